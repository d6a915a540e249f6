//! The samples that are committed, and the block of the README that is written from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::block::Block;
use crate::options::COMMITTED;
use crate::results::Measured;
use crate::summary;

const README_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const README: Block = Block {
    page: "README.md",
    name: "bench core",
    before: "## State of the project\n",
    section: "## Speed and memory\n",
};

/// Commits to the samples of a file, and to the README that shows them.
pub(crate) fn publish(samples: &Path) -> Result<()> {
    let measured = Measured::read(samples)
        .context("there is nothing to show; `cargo xtask bench core --large` measures")?;
    ensure!(!measured.quick, "figures of --quick are not for readers; measure without it");
    let page = fs::read_to_string(README_PATH).context("cannot read README.md")?;
    let page = README.placed(&page, &summary::markdown(&measured))?;
    measured.write(Path::new(COMMITTED))?;
    fs::write(README_PATH, page).context("cannot write README.md")?;
    for missing in summary::missing(&measured.samples) {
        eprintln!("not measured, so not shown: {missing}");
    }
    eprintln!("README.md shows bench/results/core.json; commit both");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::options::Run;
    use crate::sample::Sample;
    use crate::scenario::{Effort, Scenario};
    use crate::subject::Subject;

    fn measured(ps: u64) -> Measured {
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
        Measured { quick: false, machine: Machine { cpu: "a processor".into(), cores: 2 }, samples }
    }

    #[test]
    fn the_readme_shows_what_was_measured() {
        let readme = fs::read_to_string(README_PATH).unwrap();
        let committed = Path::new(COMMITTED);
        let measured = committed.exists().then(|| Measured::read(committed).unwrap());
        let right = measured.map(|measured| summary::markdown(&measured));
        let wrong = README.disagreement(&readme, right.as_deref());
        assert_eq!(wrong, None, "`cargo xtask bench table` writes it");
    }

    #[test]
    fn the_table_has_every_figure_ratios_and_dashes() {
        let text = summary::markdown(&measured(200_000));
        let row = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("| {begin}"))).unwrap();
            line.split_whitespace().filter(|cell| *cell != "|").map(str::to_owned).collect::<Vec<_>>()
        };
        let dashes = |count| vec!["-"; count];
        let counter = [vec!["slidegate", "sliding-counter", "-", "-", "200"], dashes(6)].concat();
        assert_eq!(row("slidegate sliding-counter"), counter);
        assert_eq!(row("governor / sliding-counter")[5], "3.00");
        assert_eq!(row("sliding-counter / floor")[5], "2.00");
        assert!(!text.contains("throttlecrab"), "what was not measured has no row");
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
