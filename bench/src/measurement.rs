//! The JSON file of all samples of a run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Measurement<S, T> {
    /// The setting that all samples share.
    pub setting: S,
    /// The samples, in the order of measuring.
    pub samples: Vec<T>,
}

impl<S: Serialize + DeserializeOwned, T: Serialize + DeserializeOwned> Measurement<S, T> {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} holds no samples", path.display()))
    }

    /// JSON with one sample per line, so that a difference shows which ones changed.
    fn to_json(&self) -> Result<String> {
        let samples = self.samples.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let setting = serde_json::to_string(&self.setting)?;
        Ok(format!("{{\n\"setting\": {setting},\n\"samples\": [\n{}\n]\n}}\n", samples.join(",\n")))
    }

    /// Replaces the file atomically.
    pub fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().context("a file in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let draft = path.with_extension("json.new");
        fs::write(&draft, self.to_json()?)
            .and_then(|()| fs::rename(&draft, path))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}
