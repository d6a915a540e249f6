//! The tables of docs/redis.md.

use std::fmt::Write;

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{Spread, ratio, thousands};

use crate::results::{BenchSetting, Measurement};
use crate::sample::{Sample, key_bytes, per_second, server_ns};
use crate::scenario::Scenario;
use crate::subject::Subject;

/// All tables and their conditions.
pub(crate) fn tables(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let mut text = String::new();
    for (title, table) in [
        ("Decisions per second, beside the classical sorted set", rates(samples)),
        ("Constant work: a key at its limit", flat(samples)),
        ("Sixteen admissions in one call", batches(samples)),
        ("Bytes of one key in Redis, the key itself included", memory(samples)),
    ] {
        if !table.is_empty() {
            write!(text, "### {title}\n\n{table}\n").expect("a string takes everything");
        }
    }
    let note = "Concurrent single calls on a connection share round trips too, so batches gain less with many callers than with one.\n";
    text + note + &about(&measured.setting, samples)
}

/// The conditions of the measurement.
pub(crate) fn about(setting: &BenchSetting, samples: &[Sample]) -> String {
    let BenchSetting { machine, redis, callers, connections, .. } = setting;
    let slices = samples.iter().filter(|sample| sample.rate.is_some());
    let counts = slices.map(|sample| {
        let same_kind =
            |other: &&Sample| (&other.subject, &other.scenario) == (&sample.subject, &sample.scenario);
        samples.iter().filter(same_kind).count() as u64
    });
    let runs = Spread::of(counts.collect()).map_or(0, |spread| spread.min);
    format!(
        "Medians of {runs} slices of a second each, subjects taking turns on one Redis {redis}, {callers} callers over\n\
         {connections} connections, on {machine}, which the callers share with the server: `cargo xtask bench redis`.\n"
    )
}

fn rates(samples: &[Sample]) -> Table {
    let scenarios = [Scenario::Cost1, Scenario::Cost100];
    let mut table = table([
        "20 live requests per key",
        "cost 1, k/s",
        "it / classical",
        "server us",
        "cost 100, k/s",
        "it / classical",
        "server us",
    ]);
    for subject in Subject::with_samples(samples, &scenarios) {
        let cells = scenarios.iter().flat_map(|&scenario| {
            let rate = |subject| per_second(samples, subject, scenario);
            [
                figure(rate(subject)),
                ratio(rate(subject), rate(Subject::Classical)),
                figure(server_ns(samples, subject, scenario)),
            ]
        });
        table.push([subject.title()].into_iter().chain(cells).collect());
    }
    table
}

fn flat(samples: &[Sample]) -> Table {
    let [small, large] = [Scenario::Limit100, Scenario::Limit100k];
    let mut table = table(["a key at its limit", "100, k/s", "100,000, k/s", "100,000 / 100", "server us"]);
    for subject in Subject::with_samples(samples, &[small, large]) {
        let rate = |scenario| per_second(samples, subject, scenario);
        table.push(vec![
            subject.title(),
            figure(rate(small)),
            figure(rate(large)),
            ratio(rate(large), rate(small)),
            figure(server_ns(samples, subject, large)),
        ]);
    }
    table
}

fn batches(samples: &[Sample]) -> Table {
    let mut table = table([
        "cost 1, 20 live requests per key",
        "one caller: single, k/s",
        "batches of 16, k/s",
        "batches / single",
        "many: single, k/s",
        "batches of 16, k/s",
        "batches / single",
    ]);
    let pairs = [(Scenario::Alone1, Scenario::Alone16), (Scenario::Cost1, Scenario::Batch16)];
    for subject in Subject::with_samples(samples, &[Scenario::Batch16, Scenario::Alone16]) {
        let rate = |scenario| per_second(samples, subject, scenario);
        let cells = pairs.iter().flat_map(|&(single, batched)| {
            [figure(rate(single)), figure(rate(batched)), ratio(rate(batched), rate(single))]
        });
        table.push([subject.title()].into_iter().chain(cells).collect());
    }
    table
}

fn memory(samples: &[Sample]) -> Table {
    let scenarios = [Scenario::Memory20, Scenario::Memory1000, Scenario::MemoryUnits];
    let mut table = table([
        "bytes of a key",
        "20 requests",
        "classical / it",
        "1,000 requests",
        "classical / it",
        "10,000 units in 100 calls",
        "classical / it",
    ]);
    for subject in Subject::with_samples(samples, &scenarios) {
        let cells = scenarios.iter().flat_map(|&scenario| {
            let bytes = |subject| key_bytes(samples, subject, scenario);
            let shown = bytes(subject).map_or_else(|| "-".to_owned(), |bytes| bytes.median.to_string());
            [shown, ratio(bytes(Subject::Classical), bytes(subject))]
        });
        table.push([subject.title()].into_iter().chain(cells).collect());
    }
    table
}

fn table<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Table {
    Table::new(head.map(str::to_owned).to_vec())
}

/// A figure divided by 1,000; a dash where it is missing.
pub(crate) fn figure(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| thousands(spread.median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::RateFigures;
    use slidegate_bench::machine::Machine;

    pub(crate) fn measured() -> Measurement {
        let sample = |subject: Subject, scenario: Scenario| Sample {
            subject: subject.to_string(),
            scenario: scenario.to_string(),
            rate: None,
            key_bytes: None,
        };
        let timed = |subject, scenario, decisions| {
            let rate =
                RateFigures { decisions, admitted: decisions, elapsed_us: 1_000_000, server_us: 900_000 };
            Sample { rate: Some(rate), ..sample(subject, scenario) }
        };
        let samples = vec![
            timed(Subject::Classical, Scenario::Cost1, 40_000),
            timed(Subject::SlidingLog, Scenario::Cost1, 50_000),
            timed(Subject::SlidingLog, Scenario::Cost1, 70_000),
            timed(Subject::SlidingLog, Scenario::Batch16, 120_000),
            timed(Subject::SlidingLog, Scenario::Alone1, 10_000),
            timed(Subject::SlidingLog, Scenario::Alone16, 45_000),
            timed(Subject::SlidingLog, Scenario::Limit100, 60_000),
            timed(Subject::SlidingLog, Scenario::Limit100k, 57_000),
            Sample { key_bytes: Some(2_000), ..sample(Subject::Classical, Scenario::Memory20) },
            Sample { key_bytes: Some(200), ..sample(Subject::SlidingLog, Scenario::Memory20) },
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting =
            BenchSetting { quick: false, machine, redis: "7.0.15".into(), callers: 32, connections: 2 };
        Measurement { setting, samples }
    }

    #[test]
    fn every_table_shows_medians_and_ratios() {
        let text = tables(&measured());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("| slidegate sliding-log "))
            .map(|line| line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0][1..], ["60.0", "1.50", "15.4", "-", "-", "-"]);
        assert_eq!(rows[1][1..4], ["60.0", "57.0", "0.95"]);
        assert_eq!(rows[2][1..], ["10.0", "45.0", "4.50", "60.0", "120", "2.00"]);
        assert_eq!(rows[3][1..3], ["200", "10.00"]);
        assert!(text.contains("Medians of 1 slices"), "{text}");
    }
}
