//! The pages that show the committed samples.

use std::path::Path;

use anyhow::Result;

use crate::block::Block;
use crate::results::BenchSetting;
use crate::sample::Sample;
use crate::summary;
use slidegate_bench::published::{Published, quick_is_too_short};

const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "core",
    pages: &[
        (
            Block {
                page: "README.md",
                name: "bench core",
                before: "## State of the project\n",
                section: "## Speed and memory\n",
            },
            summary::brief,
        ),
        (
            Block {
                page: "docs/performance.md",
                name: "bench core",
                before: "## Over HTTP\n",
                section: "## In the process\n",
            },
            summary::markdown,
        ),
    ],
    too_short: |setting| quick_is_too_short(setting.quick),
};

/// Publishes the samples of a file, and lists the missing ones.
pub(crate) fn publish(samples: &Path) -> Result<()> {
    let measured = PUBLISHED.publish(samples)?;
    for missing in summary::missing(&measured.samples) {
        eprintln!("not measured, so not shown: {missing}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::options::Run;
    use crate::results::Measurement;
    use crate::scenario::{Effort, Scenario};
    use crate::subject::Subject;

    fn measured(ps: u64) -> Measurement {
        let sample = |subject, scenario| Sample::of(Run { subject, scenario, effort: Effort::Full });
        let time = |subject, decision_ps| Sample {
            decision_ps: Some(decision_ps),
            ..sample(subject, Scenario::Uniform1)
        };
        let memory = Sample {
            resident_bytes: Some(110_200_000),
            key_bytes: Some(220),
            ..sample(Subject::SlidingBuckets, Scenario::MemorySmall)
        };
        let samples = vec![
            time(Subject::SlidingCounter, ps),
            time(Subject::SlidingCounter, ps),
            time(Subject::Governor, 600_000),
            time(Subject::Floor, 100_000),
            memory,
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        Measurement { setting: BenchSetting { quick: false, machine }, samples }
    }

    #[test]
    fn the_pages_show_the_committed_samples() {
        let wrong = PUBLISHED.mismatch().unwrap();
        assert_eq!(wrong, None, "`cargo xtask bench table` writes it");
    }

    #[test]
    fn the_table_has_figures_ratios_and_dashes() {
        let text = summary::markdown(&measured(200_000));
        let row = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("| {begin}"))).unwrap();
            line.split_whitespace().filter(|cell| *cell != "|").map(str::to_owned).collect::<Vec<_>>()
        };
        let dashes = |count| vec!["-"; count];
        let counter = [vec!["slidegate", "sliding-counter", "-", "-", "200"], dashes(7)].concat();
        assert_eq!(row("slidegate sliding-counter"), counter);
        assert_eq!(row("governor / sliding-counter")[5], "3.00");
        assert_eq!(row("sliding-counter / floor")[5], "2.00");
        assert!(!text.contains("throttlecrab"), "a subject without samples has no row");
        assert!(
            text.contains("Medians of 1 to 2 runs, taken in turns, on a processor, 2 cores: `cargo"),
            "{text}"
        );
        assert!(text.contains("sliding-buckets 110 MB for 500 k keys.\n"), "{text}");
        let missing = summary::missing(&measured(1).samples);
        let of_floor = missing.iter().find(|line| line.starts_with("floor: ")).unwrap();
        assert!(of_floor.starts_with("floor: hot1, zipf1, large1,"), "it takes one thread: {of_floor}");
    }
}
