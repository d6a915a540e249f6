//! The in-process store: shards, each behind a lock of its own.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::key_state::KeyState;
use super::ledger::Ledger;
use super::lock::{Lock, Locks, StdLocks};
use super::locked::Locked;
use super::shard::Shard;
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::{Decision, Verdict};
use crate::few::Few;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::{Limit, Rule};
use crate::time::TIME_MAX_US;

/// So many that two busy threads rarely meet, so few that an empty store is small.
const SHARDS: usize = 256;

/// A store in this process's memory, shared by its threads and told the time with every call.
///
/// An admission locks the shards of all its keys, in the order of their numbers, so that admissions
/// over several keys are one step and cannot deadlock. A call at an earlier time than one before it
/// sees states that stand still.
///
/// ```
/// use slidegate::store::MemoryStore;
/// use slidegate::{Admission, Charge, Key, Rule};
///
/// let api = Rule::builder("api").limit("1/10s".parse()?).build()?;
/// let request = Admission::new(&[Charge { rule: &api, key: Key::new("alice")?, cost: 1 }])?;
///
/// let store = MemoryStore::new();
/// assert!(store.check(5_000_000, &request).decision.allowed());
/// let refused = store.check(6_000_000, &request).decision;
/// assert_eq!(refused.retry_after().as_secs(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore<L: Locks = StdLocks> {
    shards: Box<[L::Of<Shard>]>,
    pub(super) ledger: L::Of<Ledger>,
    pub(super) id: u64,
    random: RandomState,
}

/// A decision and, for an admission, its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The answer.
    pub decision: Decision<'a>,
    /// Present if something was charged.
    pub receipt: Option<Receipt<'a>>,
}

/// One limit of a rule and what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUsage {
    /// The limit.
    pub limit: Limit,
    /// Units in use, rounded up.
    pub used: u64,
    /// Time until nothing is used.
    pub reset_after: Duration,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_locks(SHARDS)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<L: Locks> fmt::Debug for MemoryStore<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

impl<L: Locks> MemoryStore<L> {
    /// An empty store of `shards` shards, at least one, with locks of another kind.
    #[must_use]
    pub fn with_locks(shards: usize) -> Self {
        let random = RandomState::new();
        Self {
            shards: (0..shards.max(1)).map(|number| Lock::new(Shard::new(number))).collect(),
            ledger: Lock::new(Ledger::default()),
            id: random.hash_one("id"),
            random,
        }
    }

    /// Decides and, if everything passes, charges everything. A denial changes nothing.
    pub fn check<'a>(&self, now_us: u64, admission: &Admission<'a>) -> Outcome<'a> {
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        let mut locked = Locked::new(self, admission.asks());
        let mut verdicts = locked.verdicts(now_us);
        let decision = decision(admission, &verdicts);
        if !decision.allowed() {
            return Outcome { decision, receipt: None };
        }
        let mut charges = Few::default();
        for (index, verdict) in verdicts.iter_mut().enumerate() {
            // A shadow rule that would deny is not charged.
            if verdict.allowed() {
                let (after, charge) = locked.charge(index, now_us);
                *verdict = after;
                charges.push(charge);
            }
        }
        let receipt = Receipt { id: locked.next_id(), store: self.id, charges };
        let decision = self::decision(admission, &verdicts);
        Outcome { decision, receipt: Some(receipt).filter(|receipt| !receipt.charges.is_empty()) }
    }

    /// Decides without charging.
    #[must_use]
    pub fn peek<'a>(&self, now_us: u64, admission: &Admission<'a>) -> Decision<'a> {
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        decision(admission, &Locked::new(self, admission.asks()).verdicts(now_us))
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub fn credit(&self, now_us: u64, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, ChargeError> {
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() });
        }
        let charge = Charge { rule, key, cost: units };
        Ok(self.shard(rule.name(), key.as_str()).credit(now_us, &charge))
    }

    /// Forgets a key: it is as if it had never been seen, and receipts of earlier charges are void.
    pub fn reset(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Applied {
        self.shard(rule.name(), key.as_str()).reset(now_us, rule.name(), key.as_str())
    }

    /// What is used of every limit of a rule, without changing anything.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Vec<LimitUsage> {
        let shard = self.shard(rule.name(), key.as_str());
        let state = shard.view(rule, key.as_str());
        let usages = state.usages_under(rule, now_us).map(|(limit, usage)| LimitUsage {
            limit,
            used: usage.used,
            reset_after: Duration::from_micros(usage.reset_after_us),
        });
        usages.collect()
    }

    /// Takes over a live change of a rule: every state goes on as the new rule needs it.
    pub fn change(&self, now_us: u64, rule: &Rule) {
        for shard in &self.shards {
            shard.lock().change(now_us, rule);
        }
    }

    /// Drops every state of which nothing is used, one shard at a time; says how many.
    pub fn sweep(&self, now_us: u64) -> usize {
        self.shards.iter().map(|shard| shard.lock().sweep(now_us)).sum()
    }

    /// A copy of the state of a key as it is stored; `None` if it was never charged.
    #[must_use]
    pub fn state(&self, rule: &Rule, key: Key<'_>) -> Option<KeyState> {
        self.shard(rule.name(), key.as_str()).state(rule.name(), key.as_str()).cloned()
    }

    /// Bytes that the state of a key takes where it is stored; `None` if it was never charged.
    #[must_use]
    pub fn state_bytes(&self, rule: &Rule, key: Key<'_>) -> Option<usize> {
        let shard = self.shard(rule.name(), key.as_str());
        shard.state(rule.name(), key.as_str()).map(KeyState::memory_bytes)
    }

    /// The number of the shard that a state lives in.
    pub(super) fn shard_of(&self, rule: &str, key: &str) -> usize {
        let hash = self.random.hash_one((rule, key));
        usize::try_from(hash % self.shards.len() as u64).expect("an index")
    }

    pub(super) fn lock_shard(&self, index: usize) -> <L::Of<Shard> as Lock<Shard>>::Guard<'_> {
        self.shards[index].lock()
    }

    pub(super) fn shard(&self, rule: &str, key: &str) -> <L::Of<Shard> as Lock<Shard>>::Guard<'_> {
        self.lock_shard(self.shard_of(rule, key))
    }
}

/// Every charge shows the verdict of its state.
fn decision<'a>(admission: &Admission<'_>, verdicts: &[Verdict<'a>]) -> Decision<'a> {
    Decision::new(admission.ask_of_charge().iter().map(|&ask| verdicts[ask]).collect())
}
