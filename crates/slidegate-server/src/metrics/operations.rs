//! Calls to the store: durations and failures.

use super::exposition::Exposition;
use super::histogram::Histogram;
use super::store_cause::StoreCause;
use super::striped::Striped;

/// Operations of a store; unknown ones count as the last.
const OPERATIONS: [&str; 10] =
    ["check", "check_batch", "peek", "refund", "settle", "credit", "reset", "inspect", "probe", "other"];

/// Number of causes of failures.
const CAUSES: usize = StoreCause::ALL.len();

#[derive(Debug, Default)]
pub(crate) struct Operations {
    durations: [Histogram; OPERATIONS.len()],
    failed: Striped<{ OPERATIONS.len() * CAUSES }>,
}

impl Operations {
    /// Counts the duration of a call.
    pub(crate) fn observe_call(&self, operation: &str, took_us: u64) {
        self.durations[index_or_last(&OPERATIONS, operation)].observe(took_us);
    }

    /// Counts a failed call.
    pub(crate) fn failed(&self, operation: &str, cause: StoreCause) {
        self.failed.add(index_or_last(&OPERATIONS, operation) * CAUSES + cause as usize, 1);
    }

    /// Leaves out operations that were never called and failures that never happened, except those of `check`, which
    /// alerts refer to.
    pub(super) fn expose(&self, to: &mut Exposition, store: &str) {
        let name = "slidegate_store_operation_duration_seconds";
        to.family(name, "histogram", "How long the store took to answer.");
        let called = OPERATIONS.iter().zip(&self.durations).filter(|(_, durations)| !durations.is_empty());
        for (operation, durations) in called {
            durations.expose(to, &[("store", store), ("op", operation)]);
        }
        let help = "Calls that the store did not answer, by what failed.";
        to.family("slidegate_store_errors_total", "counter", help);
        let counts = self.failed.read();
        for (operation, counts) in OPERATIONS.iter().zip(counts.chunks(CAUSES)) {
            for (cause, count) in StoreCause::ALL.into_iter().zip(counts) {
                if *count > 0 || *operation == "check" {
                    to.sample("", &[("store", store), ("op", operation), ("kind", cause.name())], count);
                }
            }
        }
    }
}

/// The index of a name, or the last index if the name is unknown.
fn index_or_last(names: &[&str], name: &str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or(names.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_operations_count_as_other() {
        let operations = Operations::default();
        operations.failed("check", StoreCause::Full);
        operations.failed("check", StoreCause::Other);
        operations.failed("ponder", StoreCause::Ambiguous);
        operations.failed("probe", StoreCause::OutOfMemory);
        operations.observe_call("peek", 3);
        let mut to = Exposition::default();
        operations.expose(&mut to, "redis");
        let text = to.text;
        for line in [
            r#"slidegate_store_errors_total{store="redis",op="check",kind="full"} 1"#,
            r#"slidegate_store_errors_total{store="redis",op="check",kind="refused"} 0"#,
            r#"slidegate_store_errors_total{store="redis",op="check",kind="other"} 1"#,
            r#"slidegate_store_errors_total{store="redis",op="other",kind="ambiguous"} 1"#,
            r#"slidegate_store_errors_total{store="redis",op="probe",kind="out-of-memory"} 1"#,
            r#"slidegate_store_operation_duration_seconds_count{store="redis",op="peek"} 1"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
        }
        assert!(!text.contains(r#"op="settle""#), "{text}");
    }
}
