//! The benchmark in one table, for the README.

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{Spread, megabytes, ratio, thousands};

use crate::report::about;
use crate::results::Measurement;
use crate::sample::{ClosedLoop, MemoryFigures, closed, memory};
use crate::subject::Subject;

/// The table and its conditions.
pub(crate) fn markdown(measured: &Measurement) -> String {
    let samples = &measured.samples;
    let keys = measured.setting.keys;
    let head = ["HTTP, JSON", "k/s", "server CPU us", "p50 ms", "p99 ms"].map(str::to_owned);
    let mut table = Table::new([&head[..], &[format!("MB, {keys} keys")]].concat());
    let of = |subject: Subject| -> [Option<Spread>; 5] {
        [
            closed(samples, subject, ClosedLoop::per_second),
            closed(samples, subject, ClosedLoop::server_ns),
            closed(samples, subject, |closed| closed.p50_us),
            closed(samples, subject, |closed| closed.p99_us),
            memory(samples, subject, |memory: &MemoryFigures| memory.bytes),
        ]
    };
    for subject in Subject::with_samples(samples, |sample| sample.closed.is_some()) {
        let [rest @ .., bytes] = of(subject);
        let shown = |spread: Option<Spread>, text: fn(u64) -> String| {
            spread.map_or_else(|| "-".to_owned(), |spread| text(spread.median))
        };
        let cells = rest.into_iter().map(|spread| shown(spread, thousands));
        let cells = cells.chain([shown(bytes, megabytes)]);
        table.push([subject.title()].into_iter().chain(cells).collect());
    }
    let (ours, theirs) = (of(Subject::SlidingLog), of(Subject::Throttlecrab));
    let times = ours.into_iter().zip(theirs).map(|(ours, theirs)| ratio(ours, theirs));
    table.push(["sliding-log / throttlecrab".to_owned()].into_iter().chain(times).collect());
    format!(
        "{table}\nThousands of requests per second, each for another key, and the server's processor time per request. {}\
         All tables: [docs/performance.md](docs/performance.md); every sample: [bench/results/http.json](bench/results/http.json).\n",
        about(&measured.setting, samples)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_is_the_ratio_to_throttlecrab() {
        let text = markdown(&crate::report::tests::measured());
        let row = text.lines().find(|line| line.starts_with("| sliding-log / throttlecrab")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells[1..], ["1.67", "0.63", "1.00", "1.00", "0.50"]);
    }
}
