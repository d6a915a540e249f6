//! The tables on the terminal.

use std::fmt::Write;

use crate::sample::Sample;
use crate::scenario::{Effort, Scenario};
use crate::statistics::{Spread, ns, ratio};
use crate::subject::Subject;

/// One table per scenario that has samples.
pub(crate) fn tables(samples: &[Sample], effort: Effort) -> String {
    let mut text = String::new();
    for scenario in Scenario::all() {
        let spreads = spreads(samples, scenario);
        if spreads.iter().any(|(_, spread)| spread.is_some()) {
            write_table(&mut text, scenario, effort, &spreads).expect("a string takes everything");
        }
    }
    text
}

fn spreads(samples: &[Sample], scenario: Scenario) -> Vec<(Subject, Option<Spread>)> {
    let of = |subject: Subject| {
        let (subject, scenario) = (subject.to_string(), scenario.to_string());
        let wanted = samples.iter().filter(|s| s.subject == subject && s.scenario == scenario);
        Spread::of(wanted.filter_map(Sample::figure).collect())
    };
    Subject::all().into_iter().map(|subject| (subject, of(subject))).collect()
}

fn write_table(
    text: &mut String,
    scenario: Scenario,
    effort: Effort,
    spreads: &[(Subject, Option<Spread>)],
) -> Result<(), std::fmt::Error> {
    let find =
        |wanted| spreads.iter().find(|(subject, _)| *subject == wanted).and_then(|(_, spread)| *spread);
    let (governor, floor) = (find(Subject::Governor), find(Subject::Floor));
    let (unit, show): (_, fn(u64) -> String) =
        if scenario.memory() { ("bytes per key", |bytes| bytes.to_string()) } else { ("ns", ns) };
    writeln!(text, "### {}\n", scenario.title(effort))?;
    writeln!(text, "| {:36} | {unit:>13} | {:>15} | governor / it | it / floor |", "subject", "min-max")?;
    writeln!(text, "|:{:-<36}-|-{:-<13}:|-{:-<15}:|--------------:|-----------:|", "", "", "")?;
    for (subject, spread) in spreads {
        let Some(figures) = spread else { continue };
        let range = format!("{}-{}", show(figures.min), show(figures.max));
        writeln!(
            text,
            "| {:36} | {:>13} | {range:>15} | {:>13} | {:>10} |",
            subject.title(),
            show(figures.median),
            ratio(governor, *spread),
            ratio(*spread, floor)
        )?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Run;

    #[test]
    fn a_row_shows_the_median_the_ends_and_both_ratios() {
        let sample = |subject, ps| {
            let run = Run { subject, scenario: Scenario::Uniform1, effort: Effort::Full };
            Sample { decision_ps: Some(ps), ..Sample::of(run) }
        };
        let samples = [
            sample(Subject::SlidingCounter, 210_000),
            sample(Subject::SlidingCounter, 190_000),
            sample(Subject::SlidingCounter, 200_000),
            sample(Subject::Governor, 600_000),
            sample(Subject::Floor, 100_000),
        ];
        let text = tables(&samples, Effort::Full);
        let row = text.lines().find(|line| line.contains("sliding-counter")).unwrap();
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..6], ["slidegate sliding-counter", "200", "190-210", "3.00", "2.00"]);
        assert_eq!(text.matches("###").count(), 1, "scenarios without samples are left out");
    }
}
