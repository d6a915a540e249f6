//! All states in one map.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::key_state::KeyState;
use super::ledger::Ledger;
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::{Decision, Verdict};
use crate::key::Key;
use crate::receipt::{Applied, Receipt, ReceiptCharge, ReceiptId};
use crate::rule::{Limit, Rule};
use crate::time::TIME_MAX_US;

/// A store with one owner, told the time with every call. A call at an earlier time than one before
/// it sees states that stand still.
///
/// ```
/// use slidegate::store::MapStore;
/// use slidegate::{Admission, Charge, Key, Rule};
///
/// let api = Rule::builder("api").limit("1/10s".parse()?).build()?;
/// let request = Admission::new(&[Charge { rule: &api, key: Key::new("alice")?, cost: 1 }])?;
///
/// let mut store = MapStore::new();
/// assert!(store.check(5_000_000, &request).decision.allowed());
/// let refused = store.check(6_000_000, &request).decision;
/// assert_eq!(refused.retry_after().as_secs(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MapStore {
    states: HashMap<Arc<str>, HashMap<Box<str>, KeyState>>,
    pub(super) ledger: Ledger,
    pub(super) id: u64,
    random: RandomState,
    receipts: u64,
    generations: u64,
}

/// A decision and, for an admission, its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The answer.
    pub decision: Decision,
    /// Present if something was charged.
    pub receipt: Option<Receipt>,
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

impl Default for MapStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MapStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        let random = RandomState::new();
        Self {
            states: HashMap::new(),
            ledger: Ledger::default(),
            id: random.hash_one("id"),
            random,
            receipts: 0,
            generations: 0,
        }
    }

    /// Decides and, if everything passes, charges everything. A denial changes nothing.
    pub fn check(&mut self, now_us: u64, admission: &Admission<'_>) -> Outcome {
        let decision = self.peek(now_us, admission);
        if !decision.allowed() {
            return Outcome { decision, receipt: None };
        }
        let mut verdicts = decision.verdicts().to_vec();
        let mut charges = Vec::with_capacity(admission.asks().len());
        for (index, ask) in admission.asks().iter().enumerate() {
            let first = admission.ask_of_charge().iter().position(|&ask| ask == index);
            let first = first.expect("every ask comes from a charge");
            if !verdicts[first].allowed() {
                continue; // A shadow rule that would deny is not charged.
            }
            let (verdict, charge) = self.charge(now_us, ask);
            charges.push(charge);
            for (charge_index, &ask_index) in admission.ask_of_charge().iter().enumerate() {
                if ask_index == index {
                    verdicts[charge_index] = verdict.clone();
                }
            }
        }
        let receipt = Receipt { id: self.next_id(), store: self.id, charges: charges.into() };
        Outcome {
            decision: Decision::new(verdicts),
            receipt: Some(receipt).filter(|r| !r.charges.is_empty()),
        }
    }

    /// Decides without charging.
    #[must_use]
    pub fn peek(&self, now_us: u64, admission: &Admission<'_>) -> Decision {
        assert!(now_us <= TIME_MAX_US, "no clock shows a time after the year 9999");
        let verdicts: Vec<_> = admission
            .asks()
            .iter()
            .map(|ask| self.view(ask.rule, ask.key).verdict(ask.rule, now_us, ask.cost))
            .collect();
        Decision::new(admission.ask_of_charge().iter().map(|&ask| verdicts[ask].clone()).collect())
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub fn credit(
        &mut self,
        now_us: u64,
        rule: &Rule,
        key: Key<'_>,
        units: u64,
    ) -> Result<Applied, ChargeError> {
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() });
        }
        let generation = self.next_generation();
        let Some(state) = self.state_mut(rule.name(), key.as_str()) else { return Ok(Applied::default()) };
        let mut aligned = state.aligned(rule, generation).into_owned();
        let units = aligned.credit(rule, now_us, units);
        *state = aligned;
        Ok(Applied { applied: units > 0, units })
    }

    /// Forgets a key: it is as if it had never been seen, and receipts of earlier charges are void.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: Key<'_>) -> Applied {
        let state = self.states.get_mut(rule.name()).and_then(|keys| keys.remove(key.as_str()));
        let used = state.and_then(|state| state.usages(now_us).map(|(_, usage)| usage.used).max());
        let units = used.unwrap_or(0);
        Applied { applied: units > 0, units }
    }

    /// What is used of every limit of a rule, without changing anything.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Vec<LimitUsage> {
        let state = self.view(rule, key);
        let usages = state.usages_under(rule, now_us).map(|(limit, usage)| LimitUsage {
            limit,
            used: usage.used,
            reset_after: Duration::from_micros(usage.reset_after_us),
        });
        usages.collect()
    }

    /// Takes over a live change of a rule: every state goes on as the new rule needs it.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        let generation = self.next_generation();
        for state in self.states.get_mut(rule.name()).into_iter().flat_map(HashMap::values_mut) {
            *state = state.changed(rule, now_us, generation);
        }
    }

    /// Drops every state of which nothing is used; says how many.
    pub fn sweep(&mut self, now_us: u64) -> usize {
        let mut dropped = 0;
        for keys in self.states.values_mut() {
            let before = keys.len();
            keys.retain(|_, state| state.usages(now_us).any(|(_, usage)| usage.used > 0));
            dropped += before - keys.len();
            keys.shrink_to_fit();
        }
        dropped
    }

    /// The state of a key as it is stored; `None` if it was never charged.
    #[must_use]
    pub fn state(&self, rule: &Rule, key: Key<'_>) -> Option<&KeyState> {
        self.states.get(rule.name())?.get(key.as_str())
    }

    pub(super) fn state_mut(&mut self, rule: &str, key: &str) -> Option<&mut KeyState> {
        self.states.get_mut(rule)?.get_mut(key)
    }

    /// The state of a key, begun under `limits` if there is none.
    pub(super) fn state_or_new(
        &mut self,
        rule: &Arc<str>,
        key: &str,
        limits: impl IntoIterator<Item = Limit>,
    ) -> &mut KeyState {
        let generation = self.next_generation();
        match self.states.entry(Arc::clone(rule)).or_default().entry(key.into()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(KeyState::new(limits, generation)),
        }
    }

    /// The state of a key as `rule` needs it, for a look.
    fn view(&self, rule: &Rule, key: Key<'_>) -> Cow<'_, KeyState> {
        match self.state(rule, key) {
            Some(state) => state.aligned(rule, 0),
            None => Cow::Owned(KeyState::new(rule.limits().iter().copied(), 0)),
        }
    }

    fn charge(&mut self, now_us: u64, ask: &Charge<'_>) -> (Verdict, ReceiptCharge) {
        let (rule, key) = (ask.rule.shared_name(), ask.key.as_str());
        let generation = self.next_generation();
        let state = self.state_or_new(&rule, key, ask.rule.limits().iter().copied());
        if let Cow::Owned(aligned) = state.aligned(ask.rule, generation) {
            *state = aligned;
        }
        let (verdict, places) = state.charge(ask.rule, now_us, ask.cost);
        (verdict, ReceiptCharge { rule, key: key.into(), cost: ask.cost, places })
    }

    /// A number that no state of this store was begun with.
    fn next_generation(&mut self) -> u64 {
        self.generations += 1;
        self.generations
    }

    fn next_id(&mut self) -> ReceiptId {
        self.receipts += 1;
        let (high, low) =
            (self.random.hash_one(self.receipts), self.random.hash_one((self.id, self.receipts)));
        ReceiptId(u128::from(high) << 64 | u128::from(low))
    }
}
