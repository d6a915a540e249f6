//! A copy of the repository in which bugs are planted.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use super::mutant::Mutant;
use crate::files;

/// The copy, and where it is built.
pub(super) struct Tree {
    pub(super) sources: PathBuf,
    pub(super) build: PathBuf,
}

impl Tree {
    /// A fresh copy. What earlier runs built is kept: only our own crates are compiled again.
    pub(super) fn copy() -> Result<Self> {
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let place = std::path::absolute(Path::new(&target).join("mutants"))?;
        let tree = Self { sources: place.join("tree"), build: place.join("build") };
        if tree.sources.exists() {
            fs::remove_dir_all(&tree.sources)?;
        }
        for path in files::list()? {
            let copy = tree.sources.join(&path);
            let folder = copy.parent().context("a file lies in a folder")?;
            fs::create_dir_all(folder)
                .and_then(|()| fs::copy(&path, &copy))
                .with_context(|| format!("cannot copy {path} to {}", copy.display()))?;
        }
        Ok(tree)
    }

    /// What planting a mutant takes; an error if the mutant no longer fits.
    pub(super) fn prepare(&self, mutant: &Mutant) -> Result<Planting> {
        let path = self.sources.join(mutant.file);
        let sound = fs::read_to_string(&path).with_context(|| stale(mutant))?;
        let buggy = planted(mutant, &sound)?;
        Ok(Planting { path, sound, buggy })
    }
}

/// A file of the tree, without a bug and with it.
pub(super) struct Planting {
    path: PathBuf,
    sound: String,
    buggy: String,
}

impl Planting {
    pub(super) fn plant(&self) -> Result<()> {
        Ok(fs::write(&self.path, &self.buggy)?)
    }

    pub(super) fn restore(&self) -> Result<()> {
        Ok(fs::write(&self.path, &self.sound)?)
    }
}

/// The file's text with the bug in it.
pub(super) fn planted(mutant: &Mutant, text: &str) -> Result<String> {
    let found = text.matches(mutant.original).count();
    ensure!(found == 1, "{}; the original stands there {found} times", stale(mutant));
    Ok(text.replacen(mutant.original, mutant.replacement, 1))
}

fn stale(mutant: &Mutant) -> String {
    format!("the mutant table is stale: {} no longer fits {}", mutant.name, mutant.file)
}

#[cfg(test)]
mod tests {
    use super::super::mutant::Class;
    use super::*;

    const MUTANT: Mutant = Mutant {
        name: "example",
        class: Class::OffByOne,
        file: "src/example.rs",
        original: "a < b",
        replacement: "a <= b",
    };

    #[test]
    fn the_original_is_replaced_where_it_stands_once() {
        assert_eq!(planted(&MUTANT, "if a < b {}").unwrap(), "if a <= b {}");
    }

    #[test]
    fn an_original_that_is_absent_or_ambiguous_makes_the_table_stale() {
        for text in ["if a > b {}", "a < b && a < b"] {
            assert!(planted(&MUTANT, text).unwrap_err().to_string().contains("table is stale"), "{text}");
        }
    }
}
