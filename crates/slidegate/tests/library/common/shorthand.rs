//! Short constructors for tests of any store.

use slidegate::rule::{Buckets, Edge, Entries};
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
