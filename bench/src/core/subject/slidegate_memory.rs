//! slidegate in memory, called as its users call it.

use anyhow::{Context, Result};
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::MemoryStore;
use slidegate::time::{Clock, ManualClock, SystemClock};
use slidegate::{Admission, Algorithm, Decision, Limiter, Rule};

use super::{SharedLimiter, Subject, Worker};
use crate::scenario::Traffic;

/// Enough for ten million keys of the largest states.
const BUDGET_BYTES: u64 = 8 << 30;

pub(crate) struct SlidegateMemory<C = SystemClock> {
    limiter: Limiter<MemoryStore<C>>,
    rule: Rule,
}

/// The algorithm of a subject; `None` if it is not slidegate.
pub(crate) fn algorithm(subject: Subject) -> Option<Algorithm> {
    match subject {
        Subject::SlidingCounter | Subject::SlidingCounterBatch => Some(Algorithm::SlidingCounter),
        Subject::SlidingLog => Some(Algorithm::SlidingLog),
        Subject::FixedWindow => Some(Algorithm::FixedWindow),
        Subject::Gcra => Some(Algorithm::Gcra),
        Subject::SlidingBuckets => Some(Algorithm::SlidingBuckets(Buckets::DEFAULT, Edge::Full)),
        Subject::CompactLog => Some(Algorithm::CompactLog(Entries::DEFAULT)),
        _ => None,
    }
}

/// A limit that no run reaches, in a window longer than any run. Where the size of a state depends on the limit,
/// uniform traffic has an ordinary limit, which a few dozen hits per key do not reach either.
fn rate(algorithm: Algorithm, traffic: Traffic) -> &'static str {
    match (algorithm, traffic) {
        // With a large limit a unit of gcra drains within a microsecond, and a drained key is swept.
        (Algorithm::SlidingLog | Algorithm::Gcra, Traffic::Uniform) => "100/1h",
        // Limits of an ordinary size: limit times window fits 64 bits.
        (Algorithm::Gcra, Traffic::Hot) => "40000000/1h",
        (Algorithm::Gcra, Traffic::Zipf) => "1000000/200d",
        // A log of one key that only grows would measure the allocator; in this window entries also expire, at some ten
        // thousand of them.
        (Algorithm::SlidingLog, Traffic::Hot) => "4000000000/1ms",
        (Algorithm::CompactLog(_), Traffic::Uniform) => "1000/1h",
        (Algorithm::SlidingBuckets(..), Traffic::Uniform) => "60000/1h",
        _ => "4000000000/1h",
    }
}

impl SlidegateMemory {
    pub(crate) fn new(algorithm: Algorithm, traffic: Traffic) -> Result<Self> {
        SlidegateMemory::on_clock(SystemClock::new(), algorithm, rate(algorithm, traffic))
    }
}

impl SlidegateMemory<ManualClock> {
    /// On a manual clock, for runs that would take too long in real time.
    pub(crate) fn on_manual_clock(algorithm: Algorithm, rate: &str) -> Result<Self> {
        let now_us = SystemClock::new().now_us();
        Self::on_clock(ManualClock::at_us(now_us), algorithm, rate)
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        self.limiter.clock()
    }
}

impl<C: Clock> SlidegateMemory<C> {
    fn on_clock(clock: C, algorithm: Algorithm, rate: &str) -> Result<Self> {
        let rule = Rule::builder("bench").limit(rate.parse()?).algorithm(algorithm).build();
        let store = MemoryStore::with_budget(BUDGET_BYTES)?.on_clock(clock);
        Ok(Self { limiter: Limiter::new(store), rule: rule.context("the rule")? })
    }
}

impl<C: Clock> SharedLimiter for SlidegateMemory<C> {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl<C: Clock> Worker for &SlidegateMemory<C> {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        self.limiter.check(&self.rule, key).expect("a charge of 1 can pass").allowed()
    }
}

/// slidegate, called with batches of sixteen keys.
pub(crate) struct SlidegateBatches(pub(crate) SlidegateMemory);

impl SharedLimiter for SlidegateBatches {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl Worker for &SlidegateBatches {
    const BATCHES: bool = true;

    fn decide(&mut self, key: &str) -> bool {
        (&self.0).decide(key)
    }

    #[inline]
    fn decide_many(&mut self, keys: &[&str]) -> u64 {
        let SlidegateMemory { limiter, rule } = &self.0;
        let admissions = keys.iter().copied().map(|key| {
            let charge = rule.charge(key, 1).expect("keys of the bench are well formed");
            Admission::of_one(charge).expect("a charge of 1 can pass")
        });
        let decisions = limiter.check_batch(&admissions.collect::<Vec<_>>());
        decisions.iter().filter(|decision| decision.as_ref().is_ok_and(Decision::allowed)).count() as u64
    }
}
