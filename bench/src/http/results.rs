//! The JSON file of all samples.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use slidegate_bench::machine::Machine;

use crate::sample::Sample;

/// What is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Measured {
    pub(crate) setting: Setting,
    pub(crate) samples: Vec<Sample>,
}

/// What all samples have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// Whether slices were shorter than figures for readers deserve.
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
    /// Version of wrk.
    pub(crate) wrk: String,
    pub(crate) connections: u16,
    /// Keys that every server held.
    pub(crate) keys: u64,
    pub(crate) slice_seconds: u64,
}

impl Measured {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} holds no samples", path.display()))
    }

    /// JSON with one sample per line, so that a difference shows which ones changed.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Closed, Memory};
    use crate::subject::Subject;

    #[test]
    fn what_is_written_is_read_again() {
        let closed = Closed { requests: 5, elapsed_us: 4, server_us: 3, p50_us: 2, p99_us: 1 };
        let memory = Memory { keys: 3, empty_bytes: 2, bytes: 1 };
        let samples = vec![
            Sample { closed: Some(closed), ..Sample::of(Subject::Gcra) },
            Sample { memory: Some(memory), ..Sample::of(Subject::Throttlecrab) },
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = Setting {
            quick: false,
            machine,
            wrk: "4.1.0".into(),
            connections: 50,
            keys: 3,
            slice_seconds: 1,
        };
        let measured = Measured { setting, samples };
        let folder = std::env::temp_dir().join(format!("slidegate-http-results-{}", std::process::id()));
        measured.write(&folder.join("http.json")).unwrap();
        assert_eq!(Measured::read(&folder.join("http.json")).unwrap(), measured);
        fs::remove_dir_all(folder).unwrap();
    }
}
