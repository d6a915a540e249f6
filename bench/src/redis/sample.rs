//! The sample of one slice.

use serde::{Deserialize, Serialize};
use slidegate_bench::statistics::Spread;

use crate::scenario::Scenario;
use crate::subject::Subject;

/// One entry of the JSON file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    pub(crate) scenario: String,
    /// Present unless memory was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<RateFigures>,
    /// Bytes of a key in Redis, the key itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RateFigures {
    pub(crate) decisions: u64,
    pub(crate) admitted: u64,
    pub(crate) elapsed_us: u64,
    /// Processor time of redis-server.
    pub(crate) server_us: u64,
}

impl RateFigures {
    pub(crate) fn per_second(&self) -> u64 {
        self.decisions * 1_000_000 / self.elapsed_us.max(1)
    }

    /// Nanoseconds of redis-server per decision.
    pub(crate) fn server_ns(&self) -> u64 {
        self.server_us * 1_000 / self.decisions.max(1)
    }
}

/// The spread of a figure over all samples of a subject in a scenario.
pub(crate) fn spread(
    samples: &[Sample],
    subject: Subject,
    scenario: Scenario,
    figure: impl Fn(&Sample) -> Option<u64>,
) -> Option<Spread> {
    let (subject, scenario) = (subject.to_string(), scenario.to_string());
    let wanted = samples.iter().filter(|sample| sample.subject == subject && sample.scenario == scenario);
    Spread::of(wanted.filter_map(figure).collect())
}

/// Decisions per second.
pub(crate) fn per_second(samples: &[Sample], subject: Subject, scenario: Scenario) -> Option<Spread> {
    spread(samples, subject, scenario, |sample| sample.rate.as_ref().map(RateFigures::per_second))
}

/// Nanoseconds of redis-server per decision.
pub(crate) fn server_ns(samples: &[Sample], subject: Subject, scenario: Scenario) -> Option<Spread> {
    spread(samples, subject, scenario, |sample| sample.rate.as_ref().map(RateFigures::server_ns))
}

/// Bytes of a key.
pub(crate) fn key_bytes(samples: &[Sample], subject: Subject, scenario: Scenario) -> Option<Spread> {
    spread(samples, subject, scenario, |sample| sample.key_bytes)
}
