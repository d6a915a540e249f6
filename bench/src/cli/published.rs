//! The samples that are committed, and the page that is written from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use slidegate_bench::block::Block;

use crate::options::{COMMITTED, ROUNDS_MIN};
use crate::report;
use crate::results::Measured;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

const BLOCK: Block = Block {
    page: "docs/performance.md",
    name: "bench cli",
    before: "### How to read these\n",
    section: "### Table\n",
};

/// Commits to the samples of a file, and to the page that shows them.
pub(crate) fn publish(samples: &Path) -> Result<()> {
    let measured =
        Measured::read(samples).context("there is nothing to show; `cargo xtask bench cli` measures")?;
    let rounds = measured.setting.rounds;
    ensure!(rounds >= ROUNDS_MIN, "{rounds} rounds are too few for readers; measure {ROUNDS_MIN} or more");
    measured.write(Path::new(COMMITTED))?;
    let path = Path::new(ROOT).join(BLOCK.page);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", BLOCK.page))?;
    let page = BLOCK.placed(&page, &report::section(&measured))?;
    fs::write(&path, page).with_context(|| format!("cannot write {}", BLOCK.page))?;
    eprintln!("docs/performance.md shows bench/results/cli.json; commit both");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_what_was_measured() {
        let committed = Path::new(COMMITTED);
        let measured = committed.exists().then(|| Measured::read(committed).unwrap());
        let page = fs::read_to_string(Path::new(ROOT).join(BLOCK.page)).unwrap();
        let right = measured.as_ref().map(report::section);
        let wrong = BLOCK.disagreement(&page, right.as_deref());
        assert_eq!(wrong, None, "`cargo xtask bench cli --table` writes it");
    }
}
