//! The benchmark in one table, for the README.

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{Spread, ratio};

use crate::report::{about, figure};
use crate::results::Measurement;
use crate::sample::{key_bytes, per_second};
use crate::scenario::{Measure, Scenario};
use crate::subject::Subject;

const COLUMNS: [(Scenario, &str); 6] = [
    (Scenario::Cost1, "cost 1, k/s"),
    (Scenario::Cost100, "cost 100, k/s"),
    (Scenario::Batch16, "batches of 16, k/s"),
    (Scenario::Memory20, "B, 20 requests"),
    (Scenario::Memory1000, "B, 1,000 requests"),
    (Scenario::MemoryUnits, "B, 10,000 units in 100 calls"),
];

const ROWS: [Subject; 4] =
    [Subject::Classical, Subject::SlidingLog, Subject::CompactLog, Subject::SlidingCounter];

/// The table and its conditions.
pub(crate) fn markdown(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let of = |subject: Subject, scenario: Scenario| match scenario.measure() {
        Measure::Rate => per_second(samples, subject, scenario),
        Measure::Memory => key_bytes(samples, subject, scenario),
    };
    let mut head = vec!["one shared Redis".to_owned()];
    head.extend(COLUMNS.map(|(_, title)| title.to_owned()));
    let mut table = Table::new(head);
    for subject in ROWS {
        let cells = COLUMNS.map(|(scenario, _)| cell(of(subject, scenario), scenario));
        if cells.iter().any(|cell| cell != "-") {
            table.push([vec![subject.title()], cells.to_vec()].concat());
        }
    }
    let times = COLUMNS.map(|(scenario, _)| {
        let (classical, ours) = (of(Subject::Classical, scenario), of(Subject::SlidingLog, scenario));
        match scenario.measure() {
            Measure::Rate => ratio(ours, classical),
            Measure::Memory => ratio(classical, ours),
        }
    });
    table.push([vec!["sliding-log, times better".to_owned()], times.to_vec()].concat());
    format!(
        "{table}\nThousands of decisions per second with 20 live requests per key, and bytes of one key. {}\
         All tables: [docs/redis.md](docs/redis.md); every sample: [bench/results/redis.json](bench/results/redis.json).\n",
        about(&measured.setting, samples)
    )
}

fn cell(spread: Option<Spread>, scenario: Scenario) -> String {
    match (spread, scenario.measure()) {
        (None, _) => "-".to_owned(),
        (Some(bytes), Measure::Memory) => bytes.median.to_string(),
        (rate, Measure::Rate) => figure(rate),
    }
}
