//! What one run found.

use serde::{Deserialize, Serialize};

use crate::options::Run;

/// One line of a child, one entry of the JSON file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    pub(crate) scenario: String,
    pub(crate) threads: usize,
    pub(crate) keys: u64,
    /// Decisions of each thread.
    pub(crate) decisions: u64,
    /// Picoseconds of one thread for one decision; absent where memory was measured.
    pub(crate) decision_ps: Option<u64>,
    /// Resident bytes of the subject divided by its keys; absent where time was measured.
    pub(crate) key_bytes: Option<u64>,
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
            key_bytes: None,
        }
    }

    /// Whether both are of the same subject in the same scenario.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        (&self.subject, &self.scenario) == (&other.subject, &other.scenario)
    }

    /// The figure that the scenario is about.
    pub(crate) fn figure(&self) -> Option<u64> {
        self.decision_ps.or(self.key_bytes)
    }
}
