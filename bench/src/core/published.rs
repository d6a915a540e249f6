//! The samples that are committed, and the block of the README that is written from them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::options::COMMITTED;
use crate::results::Measured;
use crate::summary;

const README_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
const BEGIN: &str = "<!-- bench core: begin -->\n";
const END: &str = "<!-- bench core: end -->\n";
/// Where the block goes when there is none yet: to a section of its own before this one.
const BEFORE: &str = "## State of the project\n";
const SECTION: &str = "## Speed and memory\n";

/// Commits to the samples of a file, and to the README that shows them.
pub(crate) fn publish(samples: &Path) -> Result<()> {
    let measured = Measured::read(samples)
        .context("there is nothing to show; `cargo xtask bench core --large` measures")?;
    ensure!(!measured.quick, "figures of --quick are not for readers; measure without it");
    let page = fs::read_to_string(README_PATH).context("cannot read README.md")?;
    let page = with_block(&page, &summary::markdown(&measured))?;
    measured.write(Path::new(COMMITTED))?;
    fs::write(README_PATH, page).context("cannot write README.md")?;
    for missing in summary::missing(&measured.samples) {
        eprintln!("not measured, so not shown: {missing}");
    }
    eprintln!("README.md shows bench/results/core.json; commit both");
    Ok(())
}

/// What stands between the marks; nothing if there are none.
fn block(readme: &str) -> Result<Option<&str>> {
    match (readme.split_once(BEGIN), readme.contains(END)) {
        (None, false) => Ok(None),
        (Some((_, after)), true) => {
            let (block, _) = after.split_once(END).context("README.md: the block ends before it begins")?;
            Ok(Some(block))
        }
        (Some(_), false) => bail!("README.md: `{}` is missing", END.trim_end()),
        (None, true) => bail!("README.md: `{}` is missing", BEGIN.trim_end()),
    }
}

fn with_block(readme: &str, text: &str) -> Result<String> {
    let fresh = format!("{BEGIN}{}{END}", spaced(text));
    if let Some(block) = block(readme)? {
        return Ok(readme.replacen(&format!("{BEGIN}{block}{END}"), &fresh, 1));
    }
    ensure!(readme.contains(BEFORE), "README.md has neither the marks nor a place for them");
    Ok(readme.replacen(BEFORE, &format!("{SECTION}\n{fresh}\n{BEFORE}"), 1))
}

/// Markdown wants a table apart from the marks.
fn spaced(text: &str) -> String {
    format!("\n{text}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::options::Run;
    use crate::sample::Sample;
    use crate::scenario::{Effort, Scenario};
    use crate::subject::Subject;

    const README: &str = "# slidegate\n\n## State of the project\n\nHere now.\n";

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

    /// Why the page and the committed samples do not belong together.
    fn disagreement(readme: &str, measured: Option<&Measured>) -> Option<String> {
        match (block(readme), measured) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(None), None) => None,
            (Ok(Some(_)), None) => Some("README.md has a table without bench/results/core.json".into()),
            (Ok(None), Some(_)) => Some("README.md does not show bench/results/core.json".into()),
            (Ok(Some(shown)), Some(measured)) => {
                let right = spaced(&summary::markdown(measured));
                (shown != right).then(|| format!("README.md shows\n{shown}\nbut measured was\n{right}"))
            }
        }
    }

    #[test]
    fn the_readme_shows_what_was_measured() {
        let readme = fs::read_to_string(README_PATH).unwrap();
        let committed = Path::new(COMMITTED);
        let measured = committed.exists().then(|| Measured::read(committed).unwrap());
        let wrong = disagreement(&readme, measured.as_ref());
        assert_eq!(wrong, None, "`cargo xtask bench table` writes it");
    }

    #[test]
    fn one_without_the_other_is_noticed_and_so_is_a_stale_table() {
        let shown = with_block(README, &summary::markdown(&measured(200_000))).unwrap();
        assert!(disagreement(README, None).is_none());
        assert!(disagreement(&shown, Some(&measured(200_000))).is_none());
        assert!(disagreement(&shown, None).is_some());
        assert!(disagreement(README, Some(&measured(200_000))).is_some());
        assert!(disagreement(&shown, Some(&measured(300_000))).is_some());
        assert!(disagreement(&shown.replace(END, ""), Some(&measured(200_000))).is_some());
    }

    #[test]
    fn the_block_is_replaced_where_it_stands_and_nothing_else_changes() {
        let first = with_block(README, "old\n").unwrap();
        assert_eq!(first, format!("# slidegate\n\n{SECTION}\n{BEGIN}\nold\n\n{END}\n{BEFORE}\nHere now.\n"));
        assert_eq!(with_block(&first, "new\n").unwrap(), first.replace("old", "new"));
        assert!(with_block("# another\n", "new\n").is_err());
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
