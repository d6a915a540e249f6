//! Short constructors for tests of any store.

use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::testing::{Coverage, Event, search_covers_all};
use slidegate::{Admission, Algorithm, Charge, Key, Rule};

/// An instant that is a boundary of every window used with it.
pub const BOUNDARY_US: u64 = 20_000 * DAY_US;
pub const MILLISECOND_US: u64 = 1_000;
pub const SECOND_US: u64 = 1_000_000;
pub const DAY_US: u64 = 86_400 * SECOND_US;

/// All six algorithms, with every edge and a compact log that merges soon.
pub fn every_algorithm() -> Vec<Algorithm> {
    let edges = Edge::ALL.map(|edge| Algorithm::SlidingBuckets(Buckets::new(10).unwrap(), edge));
    let compact = Algorithm::CompactLog(Entries::new(8).unwrap());
    Algorithm::ALL.into_iter().chain(edges).chain([compact]).collect()
}

/// A rule with one or several rates.
pub fn rule(name: &str, rates: &[&str], algorithm: Algorithm) -> Rule {
    let builder =
        rates.iter().fold(Rule::builder(name), |builder, rate| builder.limit(rate.parse().unwrap()));
    builder.algorithm(algorithm).build().unwrap()
}

pub fn key(text: &str) -> Key<'_> {
    Key::new(text).unwrap()
}

pub fn admission<'a>(charges: &[(&'a Rule, &'a str, u64)]) -> Admission<'a> {
    let charges: Vec<_> =
        charges.iter().map(|&(rule, name, cost)| Charge::new(rule, key(name), cost)).collect();
    Admission::new(&charges).unwrap()
}

/// One test per algorithm, so that they run side by side. The function takes the algorithm's name.
macro_rules! test_each_algorithm {
    ($run:path) => {
        $crate::common::test_each_algorithm! { $run:
            sliding_log "sliding-log", compact_log "compact-log", sliding_buckets "sliding-buckets",
            sliding_counter "sliding-counter", fixed_window "fixed-window", gcra "gcra",
        }
    };
    ($run:path: $($test:ident $name:literal,)+) => {
        $(#[test]
        fn $test() {
            $run($name);
        })+
    };
}
pub(crate) use test_each_algorithm;

/// Every event but `except` happened ten times at least to each algorithm, if the search has its normal size.
pub fn assert_covers_all(coverage: &Coverage, algorithms: &[Algorithm], except: &[Event]) {
    let events: Vec<Event> = Event::ALL.into_iter().filter(|event| !except.contains(event)).collect();
    let missing = coverage.missing_of(&events, algorithms, 10);
    assert!(
        !search_covers_all() || missing.is_empty(),
        "cases that the traces hardly cover:\n{}",
        missing.join("\n")
    );
}
