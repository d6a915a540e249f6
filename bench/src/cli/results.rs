//! The JSON file of all samples.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;
use slidegate_bench::statistics::Spread;

use crate::subject::Subject;

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Measured {
    pub(crate) setting: Setting,
    pub(crate) samples: Vec<Sample>,
}

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

impl Measured {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} holds no samples", path.display()))
    }

    /// JSON with one subject per line, so that a difference shows which ones changed.
    fn to_json(&self) -> Result<String> {
        let samples = self.samples.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let setting = serde_json::to_string(&self.setting)?;
        Ok(format!("{{\n\"setting\": {setting},\n\"samples\": [\n{}\n]\n}}\n", samples.join(",\n")))
    }

    /// Replaces the file as a whole, so that no one finds half of it.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().context("a file in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let draft = path.with_extension("json.new");
        fs::write(&draft, self.to_json()?)
            .and_then(|()| fs::rename(&draft, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The spread of a subject in microseconds.
    pub(crate) fn spread(&self, subject: Subject) -> Option<Spread> {
        Spread::of(self.of(subject)?.to_vec())
    }

    /// What nine of ten runs, or 99 of 100, do not exceed.
    pub(crate) fn percentile(&self, subject: Subject, percent: usize) -> Option<u64> {
        let mut sorted = self.of(subject)?.to_vec();
        sorted.sort_unstable();
        sorted.get((sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?)).copied()
    }

    fn of(&self, subject: Subject) -> Option<&[u64]> {
        self.samples.iter().find(|sample| sample.subject == subject).map(|sample| sample.us.as_slice())
    }
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
        fs::remove_dir_all(folder).unwrap();
        assert_eq!(measured.percentile(Subject::CheckNormal, 90), Some(91));
        assert_eq!(measured.spread(Subject::CheckNormal).unwrap().median, 50);
        assert_eq!(measured.percentile(Subject::Version, 90), None);
    }
}
