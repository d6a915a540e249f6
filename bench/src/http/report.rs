//! The tables of docs/performance.md.

use std::fmt::Write;

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{Spread, megabytes, ratio, thousands};

use crate::results::{BenchSetting, Measurement};
use crate::runner::PERCENTS;
use crate::sample::{ClosedLoop, MemoryFigures, OpenLoop, Sample, closed, memory, open};
use crate::subject::Subject;

/// All tables and their conditions.
pub(crate) fn tables(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let mut text = String::new();
    for (title, table) in [
        ("Maximum rate: `wrk -t1`, every request for another key", rates(samples)),
        ("Memory", sizes(samples, measured.setting.keys)),
        ("Fixed rate: latency from the scheduled time of a request", latencies(samples)),
    ] {
        if !table.is_empty() {
            write!(text, "### {title}\n\n{table}\n").expect("a string takes everything");
        }
    }
    text + &about(&measured.setting, samples)
}

/// The conditions of the measurement.
pub(crate) fn about(setting: &BenchSetting, samples: &[Sample]) -> String {
    let BenchSetting { machine, wrk, connections, slice_seconds, .. } = setting;
    let slices = Subject::with_samples(samples, |sample| sample.closed.is_some());
    let counts = slices.into_iter().map(|subject| {
        let name = subject.to_string();
        samples.iter().filter(|sample| sample.subject == name && sample.closed.is_some()).count() as u64
    });
    let runs = Spread::of(counts.collect()).map_or(0, |spread| spread.min);
    format!(
        "Medians of {runs} slices of {slice_seconds} s each, the servers taking turns, wrk {wrk} with one thread and {connections} connections,\n\
         on {machine}, which the client shares with the server: `cargo xtask bench http`. All requests are admitted.\n"
    )
}

fn rates(samples: &[Sample]) -> Table {
    let mut table = table([
        "server",
        "k/s",
        "it / throttlecrab",
        "server CPU us",
        "it / throttlecrab",
        "p50 ms",
        "p99 ms",
        "it / throttlecrab",
    ]);
    for subject in Subject::with_samples(samples, |sample| sample.closed.is_some()) {
        let of =
            |figure: fn(&ClosedLoop) -> u64| figures(|subject| closed(samples, subject, figure), subject);
        let [(rate, rates), (cpu, cpus), (p50, _), (p99, p99s)] = [
            of(ClosedLoop::per_second),
            of(ClosedLoop::server_ns),
            of(|closed| closed.p50_us),
            of(|closed| closed.p99_us),
        ];
        table.push(vec![subject.title(), rate, rates, cpu, cpus, p50, p99, p99s]);
    }
    table
}

fn sizes(samples: &[Sample], keys: u64) -> Table {
    let full = format!("{keys} keys, MB");
    let mut table = table(["resident memory", "empty, MB", &full, "it / throttlecrab"]);
    for subject in Subject::with_samples(samples, |sample| sample.memory.is_some()) {
        let of = |subject, figure: fn(&MemoryFigures) -> u64| memory(samples, subject, figure);
        let shown = |spread: Option<Spread>| spread.map_or_else(dash, |spread| megabytes(spread.median));
        let bytes = |subject| of(subject, |memory| memory.bytes);
        let empty = shown(of(subject, |memory| memory.empty_bytes));
        let times = ratio(bytes(subject), bytes(Subject::Throttlecrab));
        table.push(vec![subject.title(), empty, shown(bytes(subject)), times]);
    }
    table
}

fn latencies(samples: &[Sample]) -> Table {
    let mut table = table(["of its maximum", "k/s", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms"]);
    for percent in PERCENTS {
        for subject in Subject::with_samples(samples, |sample| sample.open.is_some()) {
            let of = |figure: fn(&OpenLoop) -> u64| {
                open(samples, subject, percent, figure).map_or_else(dash, |spread| thousands(spread.median))
            };
            let [rate, p50, p90, p99, p999] = [
                of(|o| o.per_second),
                of(|o| o.p50_us),
                of(|o| o.p90_us),
                of(|o| o.p99_us),
                of(|o| o.p999_us),
            ];
            table.push(vec![format!("{percent} %, {}", subject.title()), rate, p50, p90, p99, p999]);
        }
    }
    table
}

/// A figure in thousands, and its ratio to that of the other server.
fn figures(of: impl Fn(Subject) -> Option<Spread>, subject: Subject) -> (String, String) {
    let shown = of(subject).map_or_else(dash, |spread| thousands(spread.median));
    (shown, ratio(of(subject), of(Subject::Throttlecrab)))
}

fn dash() -> String {
    "-".to_owned()
}

fn table<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Table {
    Table::new(head.map(str::to_owned).to_vec())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use slidegate_bench::machine::Machine;

    pub(crate) fn measured() -> Measurement {
        let closed = |subject, requests| {
            let closed = ClosedLoop {
                requests,
                elapsed_us: 1_000_000,
                server_us: 900_000,
                p50_us: 560,
                p99_us: 1_470,
            };
            Sample { closed: Some(closed), ..Sample::of(subject) }
        };
        let memory = |subject, bytes| {
            let memory = MemoryFigures { keys: 1_000_000, empty_bytes: 5_000_000, bytes };
            Sample { memory: Some(memory), ..Sample::of(subject) }
        };
        let open = OpenLoop {
            percent: 25,
            per_second: 25_000,
            requests: 1,
            elapsed_us: 1,
            p50_us: 100,
            p90_us: 200,
            p99_us: 300,
            p999_us: 4_000,
        };
        let samples = vec![
            memory(Subject::Throttlecrab, 140_000_000),
            memory(Subject::SlidingLog, 70_000_000),
            closed(Subject::Throttlecrab, 60_000),
            closed(Subject::SlidingLog, 80_000),
            closed(Subject::SlidingLog, 120_000),
            Sample { open: Some(open), ..Sample::of(Subject::SlidingLog) },
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = BenchSetting {
            quick: false,
            machine,
            wrk: "4.1.0".into(),
            connections: 50,
            keys: 1_000_000,
            slice_seconds: 3,
        };
        Measurement { setting, samples }
    }

    #[test]
    fn tables_show_medians_and_their_ratios_to_throttlecrab() {
        let text = tables(&measured());
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("slidegate sliding-log "))
            .map(|line| line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(rows[0][1..], ["100", "1.67", "9.4", "0.63", "0.6", "1.5", "1.00"]);
        assert_eq!(rows[1][1..], ["5", "70", "0.50"]);
        assert_eq!(rows[2], ["25 %, slidegate sliding-log", "25.0", "0.1", "0.2", "0.3", "4.0"]);
        assert!(text.contains("Medians of 1 slices of 3 s each"), "{text}");
    }
}
