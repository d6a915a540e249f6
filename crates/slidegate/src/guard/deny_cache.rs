//! The deny cache: answers a request that was denied a moment ago without asking the store again.
//!
//! A denial names the instant at which the same request passes, and until then it is denied again unless units are given
//! back. So the same charges are answered from here until that instant, and a client that keeps knocking costs the
//! store one call per hold instead of one per request. Other costs ask the store: their waits differ.
//!
//! - An entry counts from when its request was *sent*, so it ends before the store would admit, and is a thousandth
//!   shorter, because clocks run at different rates. The announced instant counts from when the answer *arrived*: it is
//!   late by a round trip at most, and never early.
//! - In this process a reset, refund, settlement, credit or rule change drops entries at once, also those whose denial
//!   is still on its way: every state has a generation, shared with the other states of its hash, which an entry must
//!   have read before its request was sent. Another process is seen after the hold.
//! - It is bounded: a full shard takes no more entries until old ones have ended, which is a second at most.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;

use crate::charge::{Admission, Charge};
use crate::decision::{Decision, StateAnswer};
use crate::few::Few;
use crate::time::whole_us;

const SHARDS: usize = 64;
/// Entries of a shard: with charges of long keys all of them take some ten megabytes.
const ENTRIES_MAX: usize = 256;
/// Larger admissions are rare, and their entries would be large.
const ASKS_MAX: usize = 4;
/// Enough that a reset seldom drops the denials of another key.
const GENERATIONS: usize = 4_096;

/// The denials of the last moment.
#[derive(Debug)]
pub(super) struct DenyCache {
    hold_us: u64,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
    generations: Box<[AtomicU32]>,
    hits: AtomicU64,
}

type Shard = std::collections::HashMap<u64, Denial, RandomState>;

/// A denial, and until when it holds.
#[derive(Debug)]
struct Denial {
    asks: Few<DeniedAsk>,
    generation: u64,
    until_us: u64,
    answered_us: u64,
}

#[derive(Debug)]
struct DeniedAsk {
    /// Rules of one id have the same name and limits.
    rule_id: u64,
    key: Box<str>,
    cost: u64,
    answer: StateAnswer,
}

/// What the cache has read before a request is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Missed {
    hash: u64,
    generation: u64,
    sent_us: u64,
}

impl DenyCache {
    /// A cache whose entries hold for at most `hold`.
    pub(super) fn new(hold: Duration) -> Self {
        let hasher = RandomState::default();
        Self {
            hold_us: whole_us(hold),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::with_hasher(hasher.clone()))).collect(),
            generations: (0..GENERATIONS).map(|_| AtomicU32::new(0)).collect(),
            hits: AtomicU64::new(0),
            hasher,
        }
    }

    /// Requests that were answered from here.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// The denial of this admission, or what its entry will need.
    pub(super) fn find<'a>(&self, now_us: u64, admission: &Admission<'a>) -> Result<Decision<'a>, Missed> {
        let asks = admission.asks();
        let hash = self.hash_of(asks);
        let missed = Missed { hash, generation: self.generation_of(asks), sent_us: now_us };
        let shard = self.shard(hash);
        let denial = shard.get(&hash).filter(|denial| denial.answers(missed, asks)).ok_or(missed)?;
        let elapsed_us = now_us.saturating_sub(denial.answered_us);
        let answers: Few<StateAnswer> = denial.asks.iter().map(|ask| ask.answer.after(elapsed_us)).collect();
        drop(shard);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Ok(Decision::new(admission, answers, None))
    }

    /// Takes note of the store's decision on an admission that was not found.
    pub(super) fn note(
        &self,
        missed: Missed,
        now_us: u64,
        admission: &Admission<'_>,
        decision: &Decision<'_>,
    ) {
        let asks = admission.asks();
        if decision.allowed() || decision.degraded() || asks.len() > ASKS_MAX {
            return;
        }
        let Some(wait_us) = decision.retry_after().map(whole_us) else { return };
        let until_us = missed.sent_us.saturating_add((wait_us - wait_us.div_ceil(1_000)).min(self.hold_us));
        if until_us <= now_us {
            return;
        }
        let (answers, _) = decision.state_answers();
        let denied = |(ask, answer): (&Charge<'_>, StateAnswer)| DeniedAsk {
            rule_id: ask.rule.id(),
            key: ask.key.identity().into(),
            cost: ask.cost,
            answer,
        };
        let asks = asks.iter().zip(answers).map(denied).collect();
        let denial = Denial { asks, generation: missed.generation, until_us, answered_us: now_us };
        let mut shard = self.shard(missed.hash);
        if shard.len() >= ENTRIES_MAX {
            shard.retain(|_, denial| denial.until_us > now_us);
        }
        if shard.len() < ENTRIES_MAX {
            shard.insert(missed.hash, denial);
        }
    }

    /// Drops the denials of these states, given as rule names and keys.
    pub(super) fn drop_states<'s>(&self, states: impl Iterator<Item = (&'s str, &'s str)>) {
        for (rule, key) in states {
            self.generation(rule, key).fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Drops all denials.
    pub(super) fn drop_all(&self) {
        for generation in &self.generations {
            generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn hash_of(&self, asks: &[Charge<'_>]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for ask in asks {
            (ask.rule.id(), ask.key.identity(), ask.cost).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The sum of the generations of all states, which grows when one of them does.
    fn generation_of(&self, asks: &[Charge<'_>]) -> u64 {
        let generation = |ask: &Charge<'_>| self.generation(ask.rule.name(), ask.key.identity());
        asks.iter().map(|ask| u64::from(generation(ask).load(Ordering::Acquire))).sum()
    }

    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
    fn generation(&self, rule: &str, key: &str) -> &AtomicU32 {
        &self.generations[self.hasher.hash_one((rule, key)) as usize % GENERATIONS]
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The maps inside use the other bits.
        self.shards[(hash >> 32) as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Denial {
    /// Whether it answers these asks at that time.
    fn answers(&self, missed: Missed, asks: &[Charge<'_>]) -> bool {
        let same = |(denied, ask): (&DeniedAsk, &Charge<'_>)| {
            (denied.rule_id, &*denied.key, denied.cost) == (ask.rule.id(), ask.key.identity(), ask.cost)
        };
        missed.sent_us < self.until_us
            && missed.generation == self.generation
            && self.asks.len() == asks.len()
            && self.asks.iter().zip(asks).all(same)
    }
}
