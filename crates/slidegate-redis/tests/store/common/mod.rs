//! Helpers of the test files.

pub mod caller;
pub mod cluster;
pub mod judge;
pub mod printed;
pub mod sentinels;
pub mod server;
#[path = "../../../../slidegate/tests/library/common/shorthand.rs"]
mod shorthand;
pub mod stores;
pub mod swallowing_proxy;
pub mod tally;
pub mod wait;
pub mod watch;

use slidegate::store::{Call, Store, StoreError};
use slidegate::{Decision, Rule};

pub use cluster::RedisCluster;
pub use server::RedisServer;
pub use shorthand::*;
pub use stores::*;
pub use tally::Tally;
pub use watch::ServerWatch;

/// Asks for `cost` units of one rule for alice.
pub async fn ask<'a>(
    store: &impl Store,
    when: Call,
    rule: &'a Rule,
    cost: u64,
) -> Result<Decision<'a>, StoreError> {
    store.check(when, &admission(&[(rule, "alice", cost)])).await
}

/// The same, panicking on an error.
pub async fn check<'a>(store: &impl Store, when: Call, rule: &'a Rule, cost: u64) -> Decision<'a> {
    ask(store, when, rule, cost).await.unwrap_or_else(|error| panic!("{}: {error}", rule.algorithm()))
}

pub async fn peek<'a>(store: &impl Store, when: Call, rule: &'a Rule, cost: u64) -> Decision<'a> {
    store.peek(when, &admission(&[(rule, "alice", cost)])).await.unwrap()
}

/// The largest use of any limit by a key.
pub async fn used_by(store: &impl Store, when: Call, rule: &Rule, name: &str) -> u64 {
    let limits = store.inspect(when, rule, key(name)).await.unwrap();
    limits.iter().map(|limit| limit.used).max().unwrap()
}

/// The largest use of any limit by alice.
pub async fn used(store: &impl Store, when: Call, rule: &Rule) -> u64 {
    used_by(store, when, rule, "alice").await
}

/// Runs a test on a runtime with two threads.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(future)
}
