//! The tables of docs/accuracy.md, and their check against the code.

use std::fmt::Write as _;

use slidegate::rule::Limit;
use slidegate::testing::{Findings, attack};

use crate::random::{self, LongRunFindings};
use crate::subjects::{ALGORITHMS, Governor, SlidegateState, Subject, limit};
use crate::typical::{self, TypicalError};
use crate::waits::{self, WaitCounts};
use crate::workload::SHAPES;
use crate::{attacks, realtime};

const RATE: &str = "1000/60s";
const WINDOWS: u64 = 200;
const PROBES: u64 = 20_000;

pub(crate) const INTRODUCTION: &str = include_str!("introduction.md");

/// Tables that are the same on every run: attacks, waits and ordinary traffic in simulated time.
pub(crate) fn exact_sections() -> String {
    let mut page = String::new();
    worst_case(&mut page).expect("writing to a string cannot fail");
    announced_waits(&mut page).expect("writing to a string cannot fail");
    typical_error(&mut page).expect("writing to a string cannot fail");
    page
}

fn worst_case(page: &mut String) -> std::fmt::Result {
    writeln!(page, "## 1. The worst case, by attack\n")?;
    writeln!(
        page,
        "Limit 1,000 per 60 s. *Most in one window*: units admitted within any 60 s. *Refused early by*: units"
    )?;
    writeln!(
        page,
        "that the true window lacked to justify a refusal; 1,000 means refused although empty.\n"
    )?;
    writeln!(page, "| limiter | most in one window | documented bound | refused early by |")?;
    writeln!(page, "|---|--:|--:|--:|")?;
    for algorithm in ALGORITHMS {
        let limit = limit(RATE, algorithm);
        let Findings { most_in_window, early_units_max, .. } = attack::all(&limit);
        let bound = algorithm.admitted_max(limit.units());
        writeln!(page, "| {algorithm} | {most_in_window} | {bound} | {early_units_max} |")?;
    }
    let rate = limit(RATE, ALGORITHMS[0]).rate();
    let found = attacks::straddle_and_echo(&mut Governor::new(rate), rate.limit(), rate.window_us());
    writeln!(page, "| governor 0.10 | {} | none given | {} |\n", found.most_in_window, found.early_units_max)
}

fn announced_waits(page: &mut String) -> std::fmt::Result {
    writeln!(page, "## 2. Announced waits\n")?;
    writeln!(
        page,
        "Limit 1,000 per 60 s and 3 per 1 s, {PROBES} refusals each. *Too long*: admitted one microsecond before"
    )?;
    writeln!(page, "the end of the wait. *Too short*: still refused at its end.\n")?;
    writeln!(page, "| limiter | waits | too long | too short |")?;
    writeln!(page, "|---|--:|--:|--:|")?;
    let probe = |subjects: [Box<dyn Subject>; 2], limits: [Limit; 2]| {
        let waits = subjects.into_iter().zip(limits).map(|(mut subject, limit)| {
            waits::probe(subject.as_mut(), limit.units(), limit.window_us(), PROBES)
        });
        waits.fold(WaitCounts::default(), |sum, waits| WaitCounts {
            probed: sum.probed + waits.probed,
            too_long: sum.too_long + waits.too_long,
            too_short: sum.too_short + waits.too_short,
        })
    };
    for algorithm in ALGORITHMS {
        let limits = [RATE, "3/1s"].map(|rate| limit(rate, algorithm));
        let waits =
            probe(limits.map(|limit| Box::new(SlidegateState::new(limit)) as Box<dyn Subject>), limits);
        writeln!(page, "| {algorithm} | {} | {} | {} |", waits.probed, waits.too_long, waits.too_short)?;
    }
    let limits = [RATE, "3/1s"].map(|rate| limit(rate, ALGORITHMS[0]));
    let waits = probe(limits.map(|limit| Box::new(Governor::new(limit.rate())) as Box<dyn Subject>), limits);
    writeln!(page, "| governor 0.10 | {} | {} | {} |\n", waits.probed, waits.too_long, waits.too_short)
}

fn typical_error(page: &mut String) -> std::fmt::Result {
    writeln!(page, "## 3. Typical error, on ordinary traffic\n")?;
    writeln!(
        page,
        "Limit 1,000 per 60 s, cost 1, {WINDOWS} windows. *Error*: |estimated used units - true used units|"
    )?;
    writeln!(
        page,
        "at every request, in percent of the limit. *Wrongly allowed / refused*: decisions that the true window"
    )?;
    writeln!(
        page,
        "contradicts. *Most*: the fullest window. *Utilisation*: admitted units, of those that the limit allows.\n"
    )?;
    for (seed, shape) in SHAPES.iter().enumerate() {
        writeln!(page, "### {}\n\n{}.\n", shape.name, capitalised(shape.description))?;
        writeln!(page, "{TYPICAL_HEAD}")?;
        for algorithm in ALGORITHMS {
            let limit = limit(RATE, algorithm);
            typical_row(page, &algorithm.to_string(), &mut SlidegateState::new(limit), seed, &limit)?;
        }
        let limit = limit(RATE, ALGORITHMS[0]);
        typical_row(page, "governor 0.10", &mut Governor::new(limit.rate()), seed, &limit)?;
        writeln!(page)?;
    }
    Ok(())
}

const TYPICAL_HEAD: &str = "| limiter | mean error | 95th percentile | wrongly allowed | wrongly refused | most | utilisation |\n\
                            |---|--:|--:|--:|--:|--:|--:|";

fn typical_row(
    page: &mut String,
    name: &str,
    subject: &mut dyn Subject,
    shape: usize,
    limit: &Limit,
) -> std::fmt::Result {
    let (units, window_us) = (limit.units(), limit.window_us());
    let arrivals = SHAPES[shape].arrivals(shape as u64, units, window_us, WINDOWS);
    write_typical(page, name, &typical::measure(subject, &arrivals, units, window_us, WINDOWS))
}

fn write_typical(page: &mut String, name: &str, typical: &TypicalError) -> std::fmt::Result {
    writeln!(
        page,
        "| {name} | {} | {} | {} | {} | {} | {} |",
        percent(typical.mean_ppm),
        percent(typical.p95_ppm),
        percent(typical.wrongly_allowed_ppm),
        percent(typical.wrongly_refused_ppm),
        typical.most_in_window,
        percent(typical.utilisation_ppm),
    )
}

/// The long run of random requests; returns the section and the broken guarantees.
pub(crate) fn long_run(decisions: u64, mut progress: impl FnMut(&str)) -> (String, Vec<String>) {
    let mut page = String::from(LONG_RUN_HEAD);
    let mut wrong = Vec::new();
    for algorithm in ALGORITHMS {
        let LongRunFindings { decisions, most_ppm, early_ppm, over_bound, waits_wrong } =
            random::run(algorithm, decisions);
        progress(&format!("{algorithm}: {decisions} decisions, {over_bound} units over its bound"));
        let limits = |ppm: u64| format!("{}.{:03} L", ppm / 1_000_000, ppm % 1_000_000 / 1_000);
        let row = format!(
            "| {algorithm} | {decisions} | {over_bound} | {} | {} | {} |\n",
            waits_wrong.len(),
            limits(most_ppm),
            limits(early_ppm),
        );
        page.push_str(&row);
        if over_bound > 0 {
            wrong.push(format!("{algorithm}: {over_bound} units over its bound"));
        }
        wrong.extend(waits_wrong);
    }
    (page, wrong)
}

pub(crate) const LONG_RUN_HEAD: &str = "\
## 4. The long run

Seeded random requests against ten limits from 1 per second to 10^12 per 400 days, at loads from idle to
overload, costs from 1 to the whole limit; for the first three a third of the runs with refunds and credits.
*Over its bound*: units above the documented bound in the fullest window; for the first three that bound is the
limit. *Wrong waits*: of every sixteenth refusal, probed at the end of the wait, one microsecond before it and at
four instants earlier. *Fullest window* and *refused early by*: found by chance, in limits; attacks find more.

| limiter | decisions | over its bound | wrong waits | fullest window | refused early by |
|---|--:|--:|--:|--:|--:|
";

/// trypema, measured in real time.
pub(crate) fn real_time(mut progress: impl FnMut(&str)) -> anyhow::Result<String> {
    const LIMIT: u32 = 1_000;
    const REAL_WINDOWS: u64 = 10;
    let units = u64::from(LIMIT);
    let mut page = String::from(REAL_TIME_HEAD);
    progress("trypema: attacks in real time");
    let waits = 40;
    writeln!(page, "| most in one window, cost 1 | {} |", realtime::coalesce_attack(LIMIT)?)?;
    writeln!(
        page,
        "| most in one window, a last request of cost 10 L | {} |",
        realtime::cost_attack(LIMIT)?
    )?;
    let (at_the_end, later) = realtime::short_waits(10, waits)?;
    writeln!(page, "| of {waits} waits, still refused at the end | {at_the_end} |")?;
    writeln!(page, "| of {waits} waits, still refused 1 ms later | {later} |\n")?;
    writeln!(page, "{}", TYPICAL_HEAD.replace("limiter", "traffic"))?;
    for (seed, shape) in SHAPES.iter().enumerate() {
        progress(&format!("trypema: {} traffic, {REAL_WINDOWS} s", shape.name));
        let arrivals = shape.arrivals(seed as u64, units, realtime::WINDOW_US, REAL_WINDOWS);
        let mut subject = realtime::Trypema::new(LIMIT)?;
        let typical = typical::measure(&mut subject, &arrivals, units, realtime::WINDOW_US, REAL_WINDOWS);
        write_typical(&mut page, shape.name, &typical)?;
    }
    Ok(page)
}

pub(crate) const REAL_TIME_HEAD: &str = "\
## 5. trypema 2.2, in real time

Its local absolute limiter reads the machine's clock, so it was measured for some seconds at 1,000 per second
with its default buckets of 10 ms; these figures do not repeat to the digit, and no test checks them.

| | |
|---|--:|
";

/// Compares a page with the code: the exact tables must be equal, and a shorter run must confirm the guarantees of the
/// long run.
pub(crate) fn disagreements(page: &str, exact: &str, short_run: &str) -> Vec<String> {
    let mut found = Vec::new();
    if !page.starts_with(INTRODUCTION) {
        found.push("the introduction differs".to_owned());
    }
    if !page.contains(exact) {
        let missing = exact.lines().filter(|line| !page.lines().any(|other| other == *line));
        found.push("sections 1 to 3 differ from the code".to_owned());
        found.extend(missing.map(|line| format!("missing: {line}")));
    }
    for heading in [LONG_RUN_HEAD, REAL_TIME_HEAD] {
        if !page.contains(heading) {
            found.push(format!("missing: {}", heading.lines().next().unwrap_or_default()));
        }
    }
    let guarantees = |text: &str| -> Vec<String> {
        let table = text.split_once(LONG_RUN_HEAD).map_or("", |(_, table)| table);
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        // Name, over its bound, wrong waits: the columns that do not depend on the size of the run.
        rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
            .map(|cells| format!("{} {} {}", cells[1], cells[3], cells[4]))
            .collect()
    };
    if guarantees(page) != guarantees(short_run) || guarantees(page).is_empty() {
        found.push("the guarantees of the long run differ from a shorter run's".to_owned());
    }
    found
}

fn percent(parts_ppm: u64) -> String {
    format!("{}.{:02} %", parts_ppm / 10_000, parts_ppm % 10_000 / 100)
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: &str = "## 1. Tables\n\n| sliding-log | 1000 |\n| gcra | 1999 |\n\n";

    fn run(decisions: u64, over: u64) -> String {
        format!("{LONG_RUN_HEAD}| sliding-log | {decisions} | {over} | 0 | 1.000 L | 0.000 L |\n")
    }

    fn page(exact: &str, long_run: &str) -> String {
        format!("{INTRODUCTION}{exact}{long_run}\n{REAL_TIME_HEAD}")
    }

    #[test]
    fn a_page_that_matches_the_code_has_no_disagreements() {
        let page = page(EXACT, &run(100_000_000, 0));
        assert_eq!(disagreements(&page, EXACT, &run(1_000_000, 0)), Vec::<String>::new());
    }

    #[test]
    fn changed_numbers_extra_rows_and_another_order_are_found() {
        let changed = EXACT.replace("1999", "1998");
        let longer = EXACT.replace("| gcra", "| ours | 0 |\n| gcra");
        let swapped = "## 1. Tables\n\n| gcra | 1999 |\n| sliding-log | 1000 |\n\n";
        for exact in [changed.as_str(), &longer, swapped] {
            let page = page(exact, &run(100_000_000, 0));
            assert!(!disagreements(&page, EXACT, &run(1_000_000, 0)).is_empty(), "{exact}");
        }
    }

    #[test]
    fn broken_guarantees_and_missing_parts_are_found() {
        let broken = page(EXACT, &run(100_000_000, 3));
        assert_eq!(disagreements(&broken, EXACT, &run(1_000_000, 0)).len(), 1);
        assert!(disagreements(EXACT, EXACT, &run(1_000_000, 0)).len() >= 3);
    }
}
