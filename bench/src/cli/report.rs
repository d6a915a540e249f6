//! The table and its conditions.

use slidegate_bench::markdown::Table;
use slidegate_bench::statistics::{ratio, thousands};

use crate::results::{Measurement, percentile, spread};
use crate::subject::Subject;

/// The table alone.
pub(crate) fn table(measured: &Measurement) -> String {
    let head = ["from start to end, ms", "median", "90 of 100", "99 of 100", "/ sqlite3"];
    let mut table = Table::new(head.map(str::to_owned).to_vec());
    let sqlite3 = spread(measured, Subject::Sqlite3);
    for subject in Subject::ALL {
        let figure = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), milliseconds);
        table.push(vec![
            subject.title().to_owned(),
            figure(spread(measured, subject).map(|spread| spread.median)),
            figure(percentile(measured, subject, 90)),
            figure(percentile(measured, subject, 99)),
            if subject == Subject::Fsync {
                "-".to_owned()
            } else {
                ratio(spread(measured, subject), sqlite3)
            },
        ]);
    }
    table.to_string()
}

/// Milliseconds with two decimals, from 100 on without.
fn milliseconds(us: u64) -> String {
    if us >= 100_000 { thousands(us) } else { format!("{}.{:02}", us / 1_000, us % 1_000 / 10) }
}

/// The section of the page.
pub(crate) fn section(measured: &Measurement) -> String {
    let setting = &measured.setting;
    format!(
        "{}\nMilliseconds from the start of a process to its end. {} rounds, every command once per round, those that sync the disk in rounds of their own, on {}, sqlite3 {}: \
         `cargo xtask bench cli`.\nEvery sample is in [bench/results/cli.json](../bench/results/cli.json).\n",
        table(measured),
        setting.rounds,
        setting.machine,
        setting.sqlite3
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_below_100_have_two_decimals() {
        assert_eq!([999, 4_567, 123_456].map(milliseconds), ["0.99", "4.56", "123"]);
    }
}
