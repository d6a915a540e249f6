//! The page that shows the committed samples.

use slidegate_bench::block::Block;
use slidegate_bench::published::Published;

use crate::options::ROUNDS_MIN;
use crate::report;
use crate::results::{BenchSetting, Sample};

pub(crate) const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "cli",
    pages: &[(
        Block {
            page: "docs/performance.md",
            name: "bench cli",
            before: "### How to read these\n",
            section: "### Table\n",
        },
        report::section,
    )],
    too_short: |setting| {
        let rounds = setting.rounds;
        (rounds < ROUNDS_MIN)
            .then(|| format!("{rounds} rounds are too few to publish; measure {ROUNDS_MIN} or more"))
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_committed_samples() {
        let wrong = PUBLISHED.mismatch().unwrap();
        assert_eq!(wrong, None, "`cargo xtask bench cli --table` writes it");
    }
}
