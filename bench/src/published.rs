//! The committed samples, and the pages that show them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::block::Block;
use crate::measurement::Measurement;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A block of a page, and the text that it must show.
pub type Page<S, T> = (Block, fn(&Measurement<S, T>) -> String);

/// The samples and pages of one benchmark.
#[derive(Debug)]
pub struct Published<S: 'static, T: 'static> {
    /// The benchmark's name after `cargo xtask bench`, and the name of its file in `bench/results/`.
    pub name: &'static str,
    /// The pages that show its samples.
    pub pages: &'static [Page<S, T>],
    /// Why a run was too short to publish, if it was.
    pub too_short: fn(&S) -> Option<String>,
}

impl<S, T> Published<S, T>
where
    S: Serialize + DeserializeOwned,
    T: Serialize + DeserializeOwned,
{
    fn committed(&self) -> PathBuf {
        Path::new(ROOT).join(format!("bench/results/{}.json", self.name))
    }

    /// Copies the samples of a file to `bench/results/` and writes the pages from them.
    pub fn publish(&self, samples: &Path) -> Result<Measurement<S, T>> {
        let name = self.name;
        let measured = Measurement::read(samples)
            .with_context(|| format!("there is nothing to show; `cargo xtask bench {name}` measures"))?;
        let too_short = (self.too_short)(&measured.setting);
        ensure!(too_short.is_none(), "{}", too_short.unwrap_or_default());
        measured.write(&self.committed())?;
        for (block, content) in self.pages {
            let path = Path::new(ROOT).join(block.page);
            let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", block.page))?;
            let page = block.inserted(&page, &content(&measured))?;
            fs::write(&path, page).with_context(|| format!("cannot write {}", block.page))?;
            eprintln!("wrote {} from bench/results/{name}.json; commit both", block.page);
        }
        Ok(measured)
    }

    /// Why a page does not show the committed samples; `None` if all pages do.
    pub fn mismatch(&self) -> Result<Option<String>> {
        let committed = self.committed();
        let measured = if committed.exists() { Some(Measurement::read(&committed)?) } else { None };
        for (block, content) in self.pages {
            let page = fs::read_to_string(Path::new(ROOT).join(block.page))?;
            let right = measured.as_ref().map(content);
            if let Some(wrong) = block.mismatch(&page, right.as_deref()) {
                return Ok(Some(wrong));
            }
        }
        Ok(None)
    }
}

/// Refuses to publish figures of `--quick`.
#[must_use]
pub fn quick_is_too_short(quick: bool) -> Option<String> {
    quick.then(|| "figures of --quick are not published; measure without it".to_owned())
}
