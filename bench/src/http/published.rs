//! The samples that are committed, and the pages that are written from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use slidegate_bench::block::Block;

use crate::options::COMMITTED;
use crate::results::Measured;
use crate::{report, summary};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A page, its block, and what is to stand there.
type Page = (Block, fn(&Measured) -> String);

const PAGES: [Page; 2] = [
    (
        Block {
            page: "README.md",
            name: "bench http",
            before: "## State of the project\n",
            section: "## Over HTTP\n",
        },
        summary::markdown,
    ),
    (
        Block {
            page: "docs/performance.md",
            name: "bench http",
            before: "## How to read them\n",
            section: "## Over HTTP\n",
        },
        report::tables,
    ),
];

/// Commits to the samples of a file, and to the pages that show them.
pub(crate) fn publish(samples: &Path) -> Result<()> {
    let measured =
        Measured::read(samples).context("there is nothing to show; `cargo xtask bench http` measures")?;
    ensure!(!measured.setting.quick, "figures of --quick are not for readers; measure without it");
    measured.write(Path::new(COMMITTED))?;
    for (block, content) in PAGES {
        let path = Path::new(ROOT).join(block.page);
        let page = fs::read_to_string(&path).with_context(|| format!("cannot read {}", block.page))?;
        let page = block.placed(&page, &content(&measured))?;
        fs::write(&path, page).with_context(|| format!("cannot write {}", block.page))?;
    }
    eprintln!("README.md and docs/performance.md show bench/results/http.json; commit all three");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_show_what_was_measured() {
        let committed = Path::new(COMMITTED);
        let measured = committed.exists().then(|| Measured::read(committed).unwrap());
        for (block, content) in PAGES {
            let page = fs::read_to_string(Path::new(ROOT).join(block.page)).unwrap();
            let right = measured.as_ref().map(content);
            let wrong = block.disagreement(&page, right.as_deref());
            assert_eq!(wrong, None, "`cargo xtask bench http --table` writes it");
        }
    }
}
