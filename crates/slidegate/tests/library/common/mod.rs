//! Helpers shared by the tests.

mod shorthand;

use slidegate::store::MemoryStore;
use slidegate::{Decision, Rule, Verdict};

pub use shorthand::*;

/// Asks for `cost` units of one rule for alice.
pub fn check<'a>(store: &MemoryStore, now_us: u64, rule: &'a Rule, cost: u64) -> Decision<'a> {
    store.check(now_us, &admission(&[(rule, "alice", cost)])).unwrap()
}

pub fn peek<'a>(store: &MemoryStore, now_us: u64, rule: &'a Rule, cost: u64) -> Decision<'a> {
    store.peek(now_us, &admission(&[(rule, "alice", cost)]))
}

pub fn used(store: &MemoryStore, now_us: u64, rule: &Rule) -> u64 {
    store.inspect(now_us, rule, key("alice")).iter().map(|limit| limit.used).max().unwrap()
}

pub fn retry_us(decision: &Decision<'_>) -> u64 {
    u64::try_from(decision.retry_after().unwrap().as_micros()).unwrap()
}

/// All numbers of a decision: the binding verdict and every charge's own. Receipts of two stores differ.
pub fn numbers<'d>(decision: &'d Decision<'_>) -> (Verdict<'d>, Vec<Verdict<'d>>) {
    assert!(!decision.degraded());
    (decision.binding(), decision.verdicts().collect())
}
