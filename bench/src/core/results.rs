//! The JSON file of all samples, written after every sample, so that an interrupted run loses nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use slidegate_bench::measurement;

use crate::machine::Machine;
use crate::sample::Sample;

/// The content of the file.
pub(crate) type Measurement = measurement::Measurement<BenchSetting, Sample>;

/// The setting of all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchSetting {
    /// Whether fewer keys and decisions were measured than published figures need.
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
}

/// The file of a run in progress.
pub(crate) struct Results {
    path: PathBuf,
    all: Measurement,
    /// How many of `all.samples`, from the front, are from earlier runs.
    earlier: usize,
}

impl Results {
    /// Begins empty or, with `keep`, with the samples in the file.
    pub(crate) fn begin(path: PathBuf, quick: bool, machine: Machine, keep: bool) -> Result<Self> {
        let empty = Measurement { setting: BenchSetting { quick, machine }, samples: Vec::new() };
        let found = fs::metadata(&path).map_err(|error| error.kind());
        if !keep || found.is_err_and(|kind| kind == ErrorKind::NotFound) {
            return Ok(Self { path, all: empty, earlier: 0 });
        }
        let all = Measurement::read(&path)?;
        let effort = |quick: bool| if quick { "with --quick" } else { "without --quick" };
        ensure!(
            all.setting.quick == empty.setting.quick,
            "{} was measured {} and cannot be continued {}; leave out --keep to begin anew",
            path.display(),
            effort(all.setting.quick),
            effort(empty.setting.quick)
        );
        ensure!(
            all.setting.machine == empty.setting.machine,
            "{} was measured on another machine, {}; leave out --keep to begin anew",
            path.display(),
            all.setting.machine
        );
        let earlier = all.samples.len();
        Ok(Self { path, all, earlier })
    }

    /// Adds a sample. The first of its kind replaces those of earlier runs.
    pub(crate) fn add(&mut self, sample: Sample) -> Result<()> {
        let fresh = self.all.samples.split_off(self.earlier);
        self.all.samples.retain(|earlier| !earlier.same_kind(&sample));
        self.earlier = self.all.samples.len();
        self.all.samples.extend(fresh);
        self.all.samples.push(sample);
        self.all.write(&self.path)
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.all.samples
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::options::Run;
    use crate::scenario::{Effort, Scenario};
    use crate::subject::Subject;

    fn sample(subject: Subject, scenario: Scenario, ps: u64) -> Sample {
        let run = Run { subject, scenario, effort: Effort::Full };
        Sample { decision_ps: Some(ps), ..Sample::of(run) }
    }

    fn begin(path: &Path, quick: bool, cores: usize, keep: bool) -> Result<Results> {
        Results::begin(path.into(), quick, Machine { cpu: "a processor".into(), cores }, keep)
    }

    #[test]
    fn a_run_keeps_samples_that_it_does_not_measure() {
        let folder = std::env::temp_dir().join(format!("slidegate-results-{}", std::process::id()));
        let path = folder.join("core.json");
        let mut first = begin(&path, false, 2, true).unwrap();
        first.add(sample(Subject::Gcra, Scenario::Hot1, 1)).unwrap();
        first.add(sample(Subject::Gcra, Scenario::Hot1, 2)).unwrap();
        first.add(sample(Subject::Floor, Scenario::Hot1, 3)).unwrap();

        let mut second = begin(&path, false, 2, true).unwrap();
        second.add(sample(Subject::Gcra, Scenario::Zipf1, 4)).unwrap();
        second.add(sample(Subject::Gcra, Scenario::Hot1, 5)).unwrap();
        second.add(sample(Subject::Gcra, Scenario::Hot1, 6)).unwrap();
        let read = Measurement::read(&path).unwrap().samples;
        let figures: Vec<_> = read.iter().map(|sample| sample.decision_ps.unwrap()).collect();
        assert_eq!(figures, [3, 4, 5, 6]);

        assert!(begin(&path, true, 2, true).is_err(), "quick figures do not mix with others");
        assert!(begin(&path, false, 4, true).is_err(), "nor do those of two machines");
        assert_eq!(begin(&path, true, 4, false).unwrap().samples(), []);
        fs::remove_dir_all(folder).unwrap();
    }
}
