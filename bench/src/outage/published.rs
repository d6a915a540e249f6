//! The page that shows the committed samples.

use slidegate_bench::block::Block;
use slidegate_bench::published::{Published, quick_is_too_short};

use crate::report;
use crate::results::{BenchSetting, Sample};

pub(crate) const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "outage",
    pages: &[(
        Block {
            page: "docs/performance.md",
            name: "bench outage",
            before: "## From the command line\n",
            section: "## Denials, and outages of the store\n",
        },
        report::tables,
    )],
    too_short: |setting| quick_is_too_short(setting.quick),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_committed_samples() {
        let wrong = PUBLISHED.mismatch().unwrap();
        assert_eq!(wrong, None, "`cargo xtask bench outage --table` writes it");
    }
}
