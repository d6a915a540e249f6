//! The sample of one run.

use serde::{Deserialize, Serialize};

use crate::flood::FloodFigures;
use crate::growth::CallTimes;
use crate::options::Run;
use crate::scenario::Scenario;
use crate::statistics::Spread;
use crate::subject::Subject;

/// One line of a child's output, one entry of the JSON file. Of the last five fields only those of the scenario's
/// measure are set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    pub(crate) scenario: String,
    pub(crate) threads: usize,
    pub(crate) keys: u64,
    /// Decisions of each thread.
    pub(crate) decisions: u64,
    /// Picoseconds of one thread for one decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision_ps: Option<u64>,
    /// Resident bytes of the subject, and those divided by its keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resident_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_bytes: Option<u64>,
    /// Times of single calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) calls: Option<CallTimes>,
    /// A flood of new keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) flooded: Option<FloodFigures>,
}

impl Sample {
    pub(crate) fn of(run: Run) -> Self {
        Self {
            subject: run.subject.to_string(),
            scenario: run.scenario.to_string(),
            threads: run.scenario.threads(),
            keys: run.scenario.keys(run.effort),
            decisions: run.scenario.decisions(run.effort),
            decision_ps: None,
            resident_bytes: None,
            key_bytes: None,
            calls: None,
            flooded: None,
        }
    }

    /// Whether both are of the same subject in the same scenario.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        (&self.subject, &self.scenario) == (&other.subject, &other.scenario)
    }

    /// The time of a decision, or the bytes of a key.
    pub(crate) fn figure(&self) -> Option<u64> {
        self.decision_ps.or(self.key_bytes)
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
