//! The pages that show the committed samples.

use slidegate_bench::block::Block;
use slidegate_bench::published::{Published, quick_is_too_short};

use crate::results::BenchSetting;
use crate::sample::Sample;
use crate::{report, summary};

pub(crate) const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "redis",
    pages: &[
        (
            Block {
                page: "README.md",
                name: "bench redis",
                before: "## State of the project\n",
                section: "## On a shared Redis\n",
            },
            summary::markdown,
        ),
        (
            Block {
                page: "docs/redis.md",
                name: "bench redis",
                before: "## The bytes of a value\n",
                section: "### Tables\n",
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
        assert_eq!(wrong, None, "`cargo xtask bench redis --table` writes it");
    }
}
