//! slidegate, called as its users call it.

use anyhow::{Context, Result};
use slidegate::rule::{Buckets, Edge, Entries};
use slidegate::{Algorithm, Charge, Key, Limiter, Rule};

use super::{Shared, Subject, Worker};
use crate::scenario::Traffic;

pub(crate) struct Ours {
    limiter: Limiter,
    rule: Rule,
}

/// The algorithm that a subject stands for; nothing if it is not ours.
pub(crate) fn algorithm(subject: Subject) -> Option<Algorithm> {
    match subject {
        Subject::SlidingCounter => Some(Algorithm::SlidingCounter),
        Subject::SlidingLog => Some(Algorithm::SlidingLog),
        Subject::FixedWindow => Some(Algorithm::FixedWindow),
        Subject::Gcra => Some(Algorithm::Gcra),
        Subject::SlidingBuckets => Some(Algorithm::SlidingBuckets(Buckets::DEFAULT, Edge::Full)),
        Subject::CompactLog => Some(Algorithm::CompactLog(Entries::DEFAULT)),
        _ => None,
    }
}

/// A limit that no run reaches, in a window that no run outlives. Where the limit decides how large a
/// state is, uniform traffic has a usual one, which ten or twenty hits per key do not reach either.
fn rate(algorithm: Algorithm, traffic: Traffic) -> &'static str {
    match (algorithm, traffic) {
        (Algorithm::SlidingLog, Traffic::Uniform) => "100/1h",
        // A log of one key that only grows would measure the allocator; this one also forgets.
        (Algorithm::SlidingLog, Traffic::Hot) => "4000000000/10ms",
        (Algorithm::CompactLog(_), Traffic::Uniform) => "1000/1h",
        (Algorithm::SlidingBuckets(..), Traffic::Uniform) => "60000/1h",
        _ => "4000000000/1h",
    }
}

impl Ours {
    pub(crate) fn new(algorithm: Algorithm, traffic: Traffic) -> Result<Self> {
        let rate = rate(algorithm, traffic).parse()?;
        let rule = Rule::builder("bench").limit(rate).algorithm(algorithm).build().context("the rule")?;
        Ok(Self { limiter: Limiter::in_memory(), rule })
    }
}

impl Shared for Ours {
    fn worker(&self) -> impl Worker {
        self
    }
}

impl Worker for &Ours {
    #[inline]
    fn decide(&mut self, key: &str) -> bool {
        let key = Key::new(key).expect("keys of the bench are well formed");
        let outcome = self.limiter.check(&[Charge { rule: &self.rule, key, cost: 1 }]);
        outcome.expect("a charge of 1 can pass").decision.allowed()
    }
}
