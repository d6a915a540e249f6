//! The tables on the terminal.

use std::fmt::Write;

use crate::flood::FloodFigures;
use crate::growth::CallTimes;
use crate::markdown::Table;
use crate::sample::{Sample, spread};
use crate::scenario::{Effort, Measure, Scenario};
use crate::statistics::{megabytes, ratio, thousands};
use crate::subject::Subject;

/// One table per scenario that has samples.
pub(crate) fn tables(samples: &[Sample], effort: Effort) -> String {
    let mut text = String::new();
    for scenario in Scenario::all() {
        let table = match scenario.measure() {
            Measure::Time => times(samples, scenario),
            Measure::Memory => memory(samples, scenario),
            Measure::Growth => growth(samples, scenario),
            Measure::Flood => flood(samples, scenario),
        };
        if !table.is_empty() {
            write!(text, "### {}\n\n{table}\n", scenario.title(effort)).expect("a string takes everything");
        }
    }
    text
}

fn times(samples: &[Sample], scenario: Scenario) -> Table {
    let mut table = table(["subject", "ns", "min-max", "governor / it", "it / floor"]);
    for subject in Subject::all() {
        let Some(time) = spread(samples, subject, scenario, Sample::figure) else { continue };
        let range = format!("{}-{}", thousands(time.min), thousands(time.max));
        let mut row = vec![subject.title(), thousands(time.median), range];
        row.extend(ratios(samples, subject, scenario));
        table.push(row);
    }
    table
}

fn memory(samples: &[Sample], scenario: Scenario) -> Table {
    let mut table = table(["subject", "bytes per key", "MB in all", "governor / it", "it / floor"]);
    for subject in Subject::all() {
        let of = |figure: fn(&Sample) -> Option<u64>| spread(samples, subject, scenario, figure);
        let (Some(key), Some(whole)) = (of(|sample| sample.key_bytes), of(|sample| sample.resident_bytes))
        else {
            continue;
        };
        let mut row = vec![subject.title(), key.median.to_string(), megabytes(whole.median)];
        row.extend(ratios(samples, subject, scenario));
        table.push(row);
    }
    table
}

/// The machine may delay a call in some repetitions, the subject delays it in all. So the minimum of the worst calls is
/// shown beside the median.
fn growth(samples: &[Sample], scenario: Scenario) -> Table {
    let mut table = table([
        "subject, times in us",
        "median, ns",
        "p99.99",
        "worst, least",
        "worst, median",
        "worst CPU, least",
        "worst CPU, median",
        "calls > 1 ms",
    ]);
    for subject in Subject::all() {
        let of = |figure: fn(&CallTimes) -> u64| {
            spread(samples, subject, scenario, |sample| sample.calls.as_ref().map(figure))
        };
        let Some(worst) = of(|calls| calls.worst_ns) else { continue };
        let whole = "a sample has all figures of its calls";
        let cpu = of(|calls| calls.worst_cpu_ns).expect(whole);
        let above = of(|calls| calls.above_1_ms).expect(whole);
        table.push(vec![
            subject.title(),
            of(|calls| calls.median_ns).expect(whole).median.to_string(),
            thousands(of(|calls| calls.p99_99_ns).expect(whole).median),
            thousands(worst.min),
            thousands(worst.median),
            thousands(cpu.min),
            thousands(cpu.median),
            format!("{}-{}", above.min, above.max),
        ]);
    }
    table
}

fn flood(samples: &[Sample], scenario: Scenario) -> Table {
    let mut table =
        table(["subject", "ns", "peak MB", "budget MB", "refused as full", "evicted", "known keys lost"]);
    for subject in Subject::all() {
        let of = |figure: fn(&FloodFigures) -> u64| {
            spread(samples, subject, scenario, |sample| sample.flooded.as_ref().map(figure))
        };
        let median = |figure| of(figure).map(|spread| spread.median);
        let Some(time) = median(|flooded| flooded.decision_ps) else { continue };
        let rest = [median(|it| it.full), median(|it| it.evicted), median(|it| it.lost)];
        let memory = [median(|it| it.peak_bytes), median(|it| it.budget_bytes)];
        let mut row = vec![subject.title(), thousands(time)];
        row.extend(memory.into_iter().flatten().map(megabytes));
        row.extend(rest.into_iter().flatten().map(|count| count.to_string()));
        table.push(row);
    }
    table
}

fn table<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Table {
    Table::new(head.map(str::to_owned).to_vec())
}

/// governor's figure by that of the subject, and the subject's by the floor's.
fn ratios(samples: &[Sample], subject: Subject, scenario: Scenario) -> [String; 2] {
    let of = |subject| spread(samples, subject, scenario, Sample::figure);
    [ratio(of(Subject::Governor), of(subject)), ratio(of(subject), of(Subject::Floor))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Run;

    fn sample(subject: Subject, scenario: Scenario) -> Sample {
        Sample::of(Run { subject, scenario, effort: Effort::Full })
    }

    fn row_of(text: &str, subject: &str) -> Vec<String> {
        let row = text.lines().find(|line| line.contains(subject)).unwrap();
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn a_time_is_shown_with_its_range_and_both_ratios() {
        let sample = |subject, ps| Sample { decision_ps: Some(ps), ..sample(subject, Scenario::Uniform1) };
        let samples = [
            sample(Subject::SlidingCounter, 210_000),
            sample(Subject::SlidingCounter, 190_000),
            sample(Subject::SlidingCounter, 200_000),
            sample(Subject::Governor, 600_000),
            sample(Subject::Floor, 100_000),
        ];
        let text = tables(&samples, Effort::Full);
        let row = row_of(&text, "sliding-counter");
        assert_eq!(row, ["slidegate sliding-counter", "200", "190-210", "3.00", "2.00"]);
        assert_eq!(text.matches("###").count(), 1, "scenarios without samples have no table");
    }

    #[test]
    fn memory_is_shown_per_key_and_in_all() {
        let samples = [Sample {
            key_bytes: Some(199),
            resident_bytes: Some(1_990_400_000),
            ..sample(Subject::SlidingBuckets, Scenario::MemoryLarge)
        }];
        let row = row_of(&tables(&samples, Effort::Full), "sliding-buckets");
        assert_eq!(row, ["slidegate sliding-buckets", "199", "1990", "-", "-"]);
    }

    #[test]
    fn growth_shows_the_minimum_and_median_of_the_worst_calls() {
        let calls = |worst_ns, above_1_ms| Sample {
            calls: Some(CallTimes {
                median_ns: 400,
                p99_99_ns: 9_000,
                worst_ns,
                worst_cpu_ns: 70_000,
                above_1_ms,
            }),
            ..sample(Subject::Governor, Scenario::Growth)
        };
        let samples = [calls(80_000, 0), calls(9_000_000, 4), calls(250_000, 0)];
        let row = row_of(&tables(&samples, Effort::Full), "governor");
        assert_eq!(row[1..], ["400", "9.0", "80.0", "250", "70.0", "70.0", "0-4"]);
    }
}
