//! The pages that show the committed samples.

use slidegate_bench::block::Block;
use slidegate_bench::published::{Published, quick_is_too_short};

use crate::results::BenchSetting;
use crate::sample::Sample;
use crate::{report, summary};

pub(crate) const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "http",
    pages: &[
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
    ],
    too_short: |setting| quick_is_too_short(setting.quick),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_show_the_committed_samples() {
        let wrong = PUBLISHED.mismatch().unwrap();
        assert_eq!(wrong, None, "`cargo xtask bench http --table` writes it");
    }
}
