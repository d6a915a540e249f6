//! The JSON file of all samples.

use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::measurement;
use slidegate_bench::statistics::Spread;

use crate::subject::Subject;

/// The content of the file.
pub(crate) type Measurement = measurement::Measurement<BenchSetting, Sample>;

/// The setting of all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchSetting {
    pub(crate) rounds: u32,
    pub(crate) machine: Machine,
    /// Version of the sqlite3 shell.
    pub(crate) sqlite3: String,
}

/// The times of a subject, in the order of the rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: Subject,
    pub(crate) us: Vec<u64>,
}

/// The spread of a subject in microseconds.
pub(crate) fn spread(measured: &Measurement, subject: Subject) -> Option<Spread> {
    Spread::of(of(measured, subject)?.to_vec())
}

/// A percentile of a subject in microseconds.
pub(crate) fn percentile(measured: &Measurement, subject: Subject, percent: usize) -> Option<u64> {
    let mut sorted = of(measured, subject)?.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?)).copied()
}

fn of(measured: &Measurement, subject: Subject) -> Option<&[u64]> {
    measured.samples.iter().find(|sample| sample.subject == subject).map(|sample| sample.us.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_can_be_read() {
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = BenchSetting { rounds: 3, machine, sqlite3: "3.40.1".into() };
        let samples = vec![Sample { subject: Subject::CheckNormal, us: (1..=100).rev().collect() }];
        let measured = Measurement { setting, samples };
        let folder = std::env::temp_dir().join(format!("slidegate-cli-results-{}", std::process::id()));
        measured.write(&folder.join("cli.json")).unwrap();
        assert_eq!(Measurement::read(&folder.join("cli.json")).unwrap(), measured);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(percentile(&measured, Subject::CheckNormal, 90), Some(91));
        assert_eq!(spread(&measured, Subject::CheckNormal).unwrap().median, 50);
        assert_eq!(percentile(&measured, Subject::Version, 90), None);
    }
}
