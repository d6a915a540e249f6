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
    /// Version of redis-server.
    pub(crate) redis: String,
    pub(crate) callers: u16,
    pub(crate) connections: u16,
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
    use crate::sample::Rate;

    #[test]
    fn what_is_written_is_read_again() {
        let rate = Rate { decisions: 5, admitted: 4, elapsed_us: 3, server_us: 2 };
        let timed =
            Sample { subject: "gcra".into(), scenario: "cost-1".into(), rate: Some(rate), key_bytes: None };
        let sized = Sample { key_bytes: Some(96), rate: None, ..timed.clone() };
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = Setting { quick: false, machine, redis: "7.0.15".into(), callers: 32, connections: 2 };
        let measured = Measured { setting, samples: vec![timed, sized] };
        let folder = std::env::temp_dir().join(format!("slidegate-redis-results-{}", std::process::id()));
        measured.write(&folder.join("redis.json")).unwrap();
        assert_eq!(Measured::read(&folder.join("redis.json")).unwrap(), measured);
        fs::remove_dir_all(folder).unwrap();
    }
}
