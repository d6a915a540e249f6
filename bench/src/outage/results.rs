//! The samples, and the JSON file of all of them.

use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::measurement;
use slidegate_bench::statistics::Spread;

/// The content of the file.
pub(crate) type Measurement = measurement::Measurement<BenchSetting, Sample>;

/// The setting of all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchSetting {
    /// Whether slices were shorter than published figures need.
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
    /// Version of wrk.
    pub(crate) wrk: String,
}

/// What a slice measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scenario {
    /// 100 requests a second per key, nearly all of them denied.
    FixedRate,
    /// As many denials as 50 callers can ask for.
    Callers,
    /// Requests over HTTP.
    Http,
}

/// One slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) scenario: Scenario,
    pub(crate) subject: String,
    pub(crate) decisions: u64,
    pub(crate) elapsed_us: u64,
    /// Scripts that Redis ran.
    pub(crate) round_trips: u64,
}

impl Sample {
    pub(crate) fn per_second(&self) -> u64 {
        self.decisions * 1_000_000 / self.elapsed_us.max(1)
    }
}

/// The spread of a figure over the samples of a subject in a scenario.
pub(crate) fn spread(
    samples: &[Sample],
    scenario: Scenario,
    subject: &str,
    figure: impl Fn(&Sample) -> u64,
) -> Option<Spread> {
    let wanted = samples.iter().filter(|sample| sample.scenario == scenario && sample.subject == subject);
    Spread::of(wanted.map(figure).collect())
}
