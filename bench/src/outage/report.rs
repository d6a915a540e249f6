//! The tables of docs/performance.md.

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{Spread, ratio, thousands};

use crate::results::{BenchSetting, Measurement, Sample, Scenario, spread};
use crate::{denials, outages};

/// All tables and their conditions.
pub(crate) fn tables(measured: &Measurement) -> String {
    let Measurement { setting: BenchSetting { machine, wrk, .. }, samples } = measured;
    format!(
        "### Denials on a shared Redis\n\n{}\n### Answers without the store, over HTTP\n\n{}\n\
         Limit 5/1m, cost 1; at 100 requests a second for each of ten keys, and as fast as 50 callers on one thread can ask\n\
         about one key. Over HTTP `wrk` {wrk} with one thread and 50 connections. Medians of slices in turn, on {machine}, which\n\
         all of them share: `cargo xtask bench outage`. Every sample is in\n\
         [bench/results/outage.json](../bench/results/outage.json).\n",
        of_denials(samples),
        of_outages(samples)
    )
}

fn of_denials(samples: &[Sample]) -> Table {
    let head = ["a limiter with", "requests", "round trips", "fewer", "50 callers, k/s", "/ no deny cache"];
    let mut table = Table::new(head.map(str::to_owned).to_vec());
    let [(with, _), (without, _)] = denials::SUBJECTS;
    for subject in [with, without] {
        let of = |figure: fn(&Sample) -> u64| spread(samples, Scenario::FixedRate, subject, figure);
        let trips = |subject| spread(samples, Scenario::FixedRate, subject, |sample| sample.round_trips);
        let rate = |subject| spread(samples, Scenario::Callers, subject, Sample::per_second);
        table.push(vec![
            subject.to_owned(),
            number(of(|sample| sample.decisions)),
            number(trips(subject)),
            ratio(trips(without), trips(subject)),
            rate(subject).map_or_else(|| "-".to_owned(), |rate| thousands(rate.median)),
            ratio(rate(subject), rate(without)),
        ]);
    }
    table
}

fn of_outages(samples: &[Sample]) -> Table {
    let head = ["a server", "k/s", "/ memory"].map(str::to_owned);
    let mut table = Table::new(head.to_vec());
    for (subject, policy) in outages::SUBJECTS {
        let rate = |subject| spread(samples, Scenario::Http, subject, Sample::per_second);
        let title = policy.map_or("in memory".to_owned(), |policy| format!("without its Redis, `{policy}`"));
        let per_second = rate(subject).map_or_else(|| "-".to_owned(), |rate| thousands(rate.median));
        table.push(vec![title, per_second, ratio(rate(subject), rate("memory"))]);
    }
    table
}

fn number(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| spread.median.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use slidegate_bench::machine::Machine;

    #[test]
    fn the_tables_show_medians_and_ratios() {
        let sample = |scenario, subject: &str, decisions, round_trips| {
            let subject = subject.to_owned();
            Sample { scenario, subject, decisions, elapsed_us: 1_000_000, round_trips }
        };
        let samples = vec![
            sample(Scenario::FixedRate, "deny cache", 30_000, 350),
            sample(Scenario::FixedRate, "no deny cache", 30_000, 30_000),
            sample(Scenario::Callers, "deny cache", 2_000_000, 3),
            sample(Scenario::Callers, "no deny cache", 50_000, 50_000),
            sample(Scenario::Http, "memory", 90_000, 0),
            sample(Scenario::Http, "allow", 99_000, 0),
        ];
        let machine = Machine { cpu: "a processor".into(), cores: 2 };
        let setting = BenchSetting { quick: false, machine, wrk: "4.1.0".into() };
        let text = tables(&Measurement { setting, samples });
        let cells = |row: &str| -> Vec<String> {
            let line = text.lines().find(|line| line.starts_with(row)).unwrap();
            line.split('|').map(|cell| cell.trim().to_owned()).filter(|cell| !cell.is_empty()).collect()
        };
        assert_eq!(cells("| deny cache")[1..], ["30000", "350", "85.71", "2000", "40.00"]);
        assert_eq!(cells("| without its Redis, `allow`")[1..], ["99.0", "1.10"]);
        assert_eq!(cells("| without its Redis, `{ local")[1..], ["-", "-"]);
    }
}
