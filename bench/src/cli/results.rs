//! The JSON file of all samples.

use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::measured;
use slidegate_bench::statistics::Spread;

use crate::subject::Subject;

/// What is in the file.
pub(crate) type Measured = measured::Measured<Setting, Sample>;

/// What all samples have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) rounds: u32,
    pub(crate) machine: Machine,
    /// Version of the shell that we are measured beside.
    pub(crate) sqlite3: String,
}

/// How long every run of a subject took, in the order of the rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: Subject,
    pub(crate) us: Vec<u64>,
}

/// The spread of a subject in microseconds.
pub(crate) fn spread(measured: &Measured, subject: Subject) -> Option<Spread> {
    Spread::of(of(measured, subject)?.to_vec())
}

/// What nine of ten runs, or 99 of 100, do not exceed.
pub(crate) fn percentile(measured: &Measured, subject: Subject, percent: usize) -> Option<u64> {
    let mut sorted = of(measured, subject)?.to_vec();
    sorted.sort_unstable();
    sorted.get((sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?)).copied()
}

fn of(measured: &Measured, subject: Subject) -> Option<&[u64]> {
    measured.samples.iter().find(|sample| sample.subject == subject).map(|sample| sample.us.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = Setting { rounds: 3, machine, sqlite3: "3.40.1".into() };
        let samples = vec![Sample { subject: Subject::CheckNormal, us: (1..=100).rev().collect() }];
        let measured = Measured { setting, samples };
        let folder = std::env::temp_dir().join(format!("slidegate-cli-results-{}", std::process::id()));
        measured.write(&folder.join("cli.json")).unwrap();
        assert_eq!(Measured::read(&folder.join("cli.json")).unwrap(), measured);
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(percentile(&measured, Subject::CheckNormal, 90), Some(91));
        assert_eq!(spread(&measured, Subject::CheckNormal).unwrap().median, 50);
        assert_eq!(percentile(&measured, Subject::Version, 90), None);
    }
}
