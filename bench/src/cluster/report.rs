//! The samples, and the table that docs/redis.md shows.

use serde::{Deserialize, Serialize};
use slidegate_bench::block::Block;
use slidegate_bench::machine::Machine;
use slidegate_bench::markdown::Table;
use slidegate_bench::measurement;
use slidegate_bench::published::{Published, quick_is_too_short};
use slidegate_bench::statistics::{Spread, ratio, thousands};

use crate::{SUBJECTS, Subject};

/// The content of the JSON file.
pub(crate) type Measurement = measurement::Measurement<BenchSetting, Sample>;

/// The setting of all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchSetting {
    /// Whether slices were shorter than published figures need.
    pub(crate) quick: bool,
    pub(crate) machine: Machine,
}

/// The sample of one slice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) subject: String,
    pub(crate) decisions: u64,
    pub(crate) elapsed_us: u64,
    /// Processor time of the client.
    pub(crate) client_ns: u64,
}

pub(crate) const PUBLISHED: Published<BenchSetting, Sample> = Published {
    name: "cluster",
    pages: &[(
        Block {
            page: "docs/redis.md",
            name: "bench cluster",
            before: "## The bytes of a value\n",
            section: "### A cluster beside one Redis\n",
        },
        table,
    )],
    too_short: |setting| quick_is_too_short(setting.quick),
};

fn spread(measured: &Measurement, subject: Subject, figure: impl Fn(&Sample) -> u64) -> Option<Spread> {
    let samples = measured.samples.iter().filter(|sample| sample.subject == subject.name);
    Spread::of(samples.map(figure).collect())
}

/// The table and its conditions.
pub(crate) fn table(measured: &Measurement) -> String {
    let client_ns = |subject| spread(measured, subject, |sample| sample.client_ns / sample.decisions.max(1));
    let per_second =
        |subject| spread(measured, subject, |sample| sample.decisions * 1_000_000 / sample.elapsed_us.max(1));
    let shown = |spread: Option<Spread>| spread.map_or("-".to_owned(), |spread| thousands(spread.median));
    let head = ["one decision", "client us", "it / one Redis", "k/s", "it / one Redis"];
    let mut table = Table::new(head.map(str::to_owned).to_vec());
    for subject in SUBJECTS {
        let of_as_many = |other: &&Subject| other.callers == subject.callers;
        let base = *SUBJECTS.iter().find(of_as_many).unwrap_or(&subject);
        table.push(vec![
            subject.name.to_owned(),
            shown(client_ns(subject)),
            ratio(client_ns(subject), client_ns(base)),
            shown(per_second(subject)),
            ratio(per_second(subject), per_second(base)),
        ]);
    }
    let machine = &measured.setting.machine;
    let slices = measured.samples.len() / SUBJECTS.len();
    format!(
        "{table}\nProcessor time of the client per decision, and thousands of decisions per second. `sliding-counter`, \
         cost 1; one connection for one caller, two for 32, to each node. Medians of {slices} slices of a second each, subjects taking turns, on {machine}, \
         which the callers share with the servers: `cargo xtask bench cluster`.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_the_committed_samples() {
        let wrong = PUBLISHED.mismatch().unwrap();
        assert_eq!(wrong, None, "`cargo xtask bench cluster --table` writes it");
    }
}
