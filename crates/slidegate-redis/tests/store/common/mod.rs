//! What the test files share.

pub mod judge;
pub mod server;
pub mod stores;
pub mod tally;
pub mod watch;

use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::{Outcome, Store, StoreError, When};
use slidegate::{Admission, Algorithm, Charge, Decision, Key, Rule};

pub use server::RedisServer;
pub use stores::*;
pub use tally::Tally;
pub use watch::Watch;

pub const MILLISECOND_US: u64 = 1_000;
pub const SECOND_US: u64 = 1_000_000;
pub const DAY_US: u64 = 86_400 * SECOND_US;
/// An instant that is a boundary of every window used with it.
pub const BOUNDARY_US: u64 = 20_000 * DAY_US;

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
        charges.iter().map(|&(rule, name, cost)| Charge { rule, key: key(name), cost }).collect();
    Admission::new(&charges).unwrap()
}

/// Asks for `cost` units of one rule for alice.
pub async fn ask<'a>(
    store: &impl Store,
    when: When,
    rule: &'a Rule,
    cost: u64,
) -> Result<Outcome<'a>, StoreError> {
    store.check(when, &admission(&[(rule, "alice", cost)])).await
}

/// The same where nothing may go wrong.
pub async fn check<'a>(store: &impl Store, when: When, rule: &'a Rule, cost: u64) -> Outcome<'a> {
    ask(store, when, rule, cost).await.unwrap_or_else(|error| panic!("{}: {error}", rule.algorithm()))
}

pub async fn peek<'a>(store: &impl Store, when: When, rule: &'a Rule, cost: u64) -> Decision<'a> {
    store.peek(when, &admission(&[(rule, "alice", cost)])).await.unwrap()
}

/// The most that a key has used of any limit.
pub async fn used_by(store: &impl Store, when: When, rule: &Rule, name: &str) -> u64 {
    let limits = store.inspect(when, rule, key(name)).await.unwrap();
    limits.iter().map(|limit| limit.used).max().unwrap()
}

/// The most that alice has used of any limit.
pub async fn used(store: &impl Store, when: When, rule: &Rule) -> u64 {
    used_by(store, when, rule, "alice").await
}

/// Runs a test on a runtime with as many threads as it may need.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(future)
}
