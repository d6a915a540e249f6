//! slidegate, called as its users call it.

use anyhow::{Context, Result};
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::store::MemoryStore;
use slidegate::time::{Clock, ManualClock, SystemClock};
use slidegate::{Admission, Algorithm, Decision, Limiter, Rule};

use super::{Shared, Subject, Worker};
use crate::scenario::Traffic;

/// Ten million keys of the largest states fit it.
const BUDGET_BYTES: u64 = 8 << 30;

pub(crate) struct Ours<C = SystemClock> {
    limiter: Limiter<MemoryStore<C>>,
    rule: Rule,
}

/// The algorithm that a subject stands for; nothing if it is not ours.
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

/// A limit that no run reaches, in a window that no run outlives. Where the limit decides how large a
/// state is, uniform traffic has a usual one, which a few dozen hits per key do not reach either.
fn rate(algorithm: Algorithm, traffic: Traffic) -> &'static str {
    match (algorithm, traffic) {
        // Of gcra a unit of a great limit drains within a microsecond, and a key of which nothing is left is
        // forgotten.
        (Algorithm::SlidingLog | Algorithm::Gcra, Traffic::Uniform) => "100/1h",
        (Algorithm::Gcra, _) => "4000000000/400d",
        // A log of one key that only grows would measure the allocator; this one also forgets, and has some ten
        // thousand entries.
        (Algorithm::SlidingLog, Traffic::Hot) => "4000000000/1ms",
        (Algorithm::CompactLog(_), Traffic::Uniform) => "1000/1h",
        (Algorithm::SlidingBuckets(..), Traffic::Uniform) => "60000/1h",
        _ => "4000000000/1h",
    }
}

impl Ours {
    pub(crate) fn new(algorithm: Algorithm, traffic: Traffic) -> Result<Self> {
        Ours::on_clock(SystemClock::new(), algorithm, rate(algorithm, traffic))
    }
}

impl Ours<ManualClock> {
    /// For what would take too long in real time.
    pub(crate) fn on_manual_clock(algorithm: Algorithm, rate: &str) -> Result<Self> {
        let now_us = SystemClock::new().now_us();
        Self::on_clock(ManualClock::at_us(now_us), algorithm, rate)
    }

    pub(crate) fn clock(&self) -> &ManualClock {
        self.limiter.clock()
    }
}

impl<C: Clock> Ours<C> {
    fn on_clock(clock: C, algorithm: Algorithm, rate: &str) -> Result<Self> {
        let rule = Rule::builder("bench").limit(rate.parse()?).algorithm(algorithm).build();
        let store = MemoryStore::with_budget(BUDGET_BYTES)?.on_clock(clock);
        Ok(Self { limiter: Limiter::new(store), rule: rule.context("the rule")? })
    }
}

impl<C: Clock> Shared for Ours<C> {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl<C: Clock> Worker for &Ours<C> {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        self.limiter.check(&self.rule, key).expect("a charge of 1 can pass").allowed()
    }
}

/// slidegate, asked for sixteen keys at a time.
pub(crate) struct Batched(pub(crate) Ours);

impl Shared for Batched {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl Worker for &Batched {
    const BATCHES: bool = true;

    fn decide(&mut self, key: &str) -> bool {
        (&self.0).decide(key)
    }

    #[inline]
    fn decide_many(&mut self, keys: &[&str]) -> u64 {
        let Ours { limiter, rule } = &self.0;
        let admissions = keys.iter().copied().map(|key| {
            let charge = rule.charge(key, 1).expect("keys of the bench are well formed");
            Admission::new(&[charge]).expect("a charge of 1 can pass")
        });
        let decisions = limiter.check_batch(&admissions.collect::<Vec<_>>());
        decisions.iter().filter(|decision| decision.as_ref().is_ok_and(Decision::allowed)).count() as u64
    }
}
