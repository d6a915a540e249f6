//! All states in one map.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use super::key_state::KeyState;
use super::ledger::{Ledger, expires_us};
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::{Decision, Verdict};
use crate::key::Key;
use crate::receipt::{Applied, Receipt, ReceiptCharge, ReceiptError, ReceiptId};
use crate::rule::{Limit, Rule};

/// A settlement may charge at most so many limits above the cost.
const EXCESS_LIMITS_MAX: u64 = 16;

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
    ledger: Ledger,
    id: u64,
    random: RandomState,
    receipts: u64,
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
        let receipt = Receipt { id: self.next_id(), store: self.id, at_us: now_us, charges: charges.into() };
        Outcome {
            decision: Decision::new(verdicts),
            receipt: Some(receipt).filter(|r| !r.charges.is_empty()),
        }
    }

    /// Decides without charging.
    #[must_use]
    pub fn peek(&self, now_us: u64, admission: &Admission<'_>) -> Decision {
        let verdicts: Vec<_> = admission
            .asks()
            .iter()
            .map(|ask| self.view(now_us, ask.rule, ask.key).verdict(ask.rule, now_us, ask.cost))
            .collect();
        Decision::new(admission.ask_of_charge().iter().map(|&ask| verdicts[ask].clone()).collect())
    }

    /// Takes back a whole admission. A receipt works once; later, or when its charges have expired,
    /// nothing is applied.
    pub fn refund(&mut self, now_us: u64, receipt: &Receipt) -> Result<Applied, ReceiptError> {
        self.spend(now_us, receipt, |store| {
            let units = receipt
                .charges()
                .iter()
                .map(|charge| store.give_back(now_us, receipt, charge, charge.cost))
                .sum();
            Ok(Applied { applied: units > 0, units })
        })
    }

    /// Replaces the cost of an admission by what was really spent: less is refunded, more is charged
    /// now, unconditionally, because the work is done.
    pub fn settle(&mut self, now_us: u64, receipt: &Receipt, actual: u64) -> Result<Applied, ReceiptError> {
        self.spend(now_us, receipt, |store| {
            let cost = settled_cost(receipt, actual)?;
            let moved = receipt.charges().iter().map(|charge| match actual.checked_sub(cost) {
                Some(0) => 0,
                Some(excess) => store.charge_excess(now_us, charge, excess),
                None => store.give_back(now_us, receipt, charge, cost - actual),
            });
            let units = moved.sum();
            Ok(Applied { applied: units > 0 || actual == cost, units })
        })
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub fn credit(&mut self, now_us: u64, charge: &Charge<'_>) -> Result<Applied, ChargeError> {
        let Charge { rule, key, cost: units } = *charge;
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() });
        }
        let Some(state) = self.states.get_mut(rule.name()).and_then(|keys| keys.get_mut(key.as_str())) else {
            return Ok(Applied::default());
        };
        let mut aligned = state.aligned(rule, now_us).into_owned();
        let units = aligned.credit(rule, now_us, units);
        *state = aligned;
        Ok(Applied { applied: units > 0, units })
    }

    /// Forgets a key: it is as if it had never been seen, for receipts of earlier charges too.
    pub fn reset(&mut self, now_us: u64, rule: &Rule, key: Key<'_>) -> Result<Applied, ReceiptError> {
        self.ledger.make_room_for_reset(now_us)?;
        let Some(state) = self.states.get_mut(rule.name()).and_then(|keys| keys.remove(key.as_str())) else {
            return Ok(Applied::default());
        };
        let usages = || state.usages(now_us).map(|(_, usage)| usage);
        let units = usages().map(|usage| usage.used).max().unwrap_or(0);
        let idle_after_us = usages().map(|usage| usage.reset_after_us).max().unwrap_or(0);
        self.ledger.record_reset(rule.name(), key.as_str(), now_us, now_us + idle_after_us);
        Ok(Applied { applied: units > 0, units })
    }

    /// What is used of every limit of a rule, without changing anything.
    #[must_use]
    pub fn inspect(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Vec<LimitUsage> {
        let state = self.view(now_us, rule, key);
        let usages = state.usages_under(rule, now_us).map(|(limit, usage)| LimitUsage {
            limit,
            used: usage.used,
            reset_after: Duration::from_micros(usage.reset_after_us),
        });
        usages.collect()
    }

    /// Takes over a live change of a rule: every state goes on as the new rule needs it.
    pub fn change(&mut self, now_us: u64, rule: &Rule) {
        for state in self.states.get_mut(rule.name()).into_iter().flat_map(HashMap::values_mut) {
            *state = state.changed(rule, now_us);
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

    /// The state of a key as `rule` needs it now.
    fn view(&self, now_us: u64, rule: &Rule, key: Key<'_>) -> Cow<'_, KeyState> {
        match self.state(rule, key) {
            Some(state) => state.aligned(rule, now_us),
            None => Cow::Owned(KeyState::new(rule.limits().iter().copied())),
        }
    }

    fn charge(&mut self, now_us: u64, ask: &Charge<'_>) -> (Verdict, ReceiptCharge) {
        let rule = ask.rule.shared_name();
        let keys = self.states.entry(Arc::clone(&rule)).or_default();
        let state = match keys.entry(ask.key.as_str().into()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(KeyState::new(ask.rule.limits().iter().copied())),
        };
        if let Cow::Owned(aligned) = state.aligned(ask.rule, now_us) {
            *state = aligned;
        }
        let (verdict, places) = state.charge(ask.rule, now_us, ask.cost);
        (verdict, ReceiptCharge { rule, key: ask.key.as_str().into(), cost: ask.cost, places })
    }

    /// Runs `act` if the receipt is ours, unspent and alive, and records it as spent if that succeeds.
    fn spend(
        &mut self,
        now_us: u64,
        receipt: &Receipt,
        act: impl FnOnce(&mut Self) -> Result<Applied, ReceiptError>,
    ) -> Result<Applied, ReceiptError> {
        if receipt.store != self.id {
            return Err(ReceiptError::Foreign);
        }
        if self.ledger.is_spent(receipt.id()) || expires_us(receipt) <= now_us {
            return Ok(Applied::default());
        }
        self.ledger.make_room_for_receipt(now_us)?;
        let applied = act(self)?;
        self.ledger.spend(receipt);
        Ok(applied)
    }

    /// Lowers what a charge left behind by up to `units`; nothing if the state was reset since.
    fn give_back(&mut self, now_us: u64, receipt: &Receipt, charge: &ReceiptCharge, units: u64) -> u64 {
        if self.ledger.reset_since(&charge.rule, &charge.key, receipt.at_us) {
            return 0;
        }
        let state = self.states.get_mut(&charge.rule).and_then(|keys| keys.get_mut(&charge.key));
        state.map_or(0, |state| state.refund(now_us, &charge.places, units))
    }

    fn charge_excess(&mut self, now_us: u64, charge: &ReceiptCharge, units: u64) -> u64 {
        let state = match self.states.entry(Arc::clone(&charge.rule)).or_default().entry(charge.key.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                entry.insert(KeyState::new(charge.places.iter().map(|place| place.limit)))
            }
        };
        state.charge_excess(now_us, units);
        units
    }

    fn next_id(&mut self) -> ReceiptId {
        self.receipts += 1;
        let (high, low) =
            (self.random.hash_one(self.receipts), self.random.hash_one((self.id, self.receipts)));
        ReceiptId(u128::from(high) << 64 | u128::from(low))
    }
}

/// The cost that all charges of a receipt have, if it can be settled for `actual`.
fn settled_cost(receipt: &Receipt, actual: u64) -> Result<u64, ReceiptError> {
    let mut cost = None;
    for charge in receipt.charges() {
        let first = *cost.get_or_insert(charge.cost);
        if charge.cost != first {
            return Err(ReceiptError::UnequalCosts { first, second: charge.cost });
        }
        let limits = charge.places.iter().map(|place| place.limit.units());
        let excess_max = EXCESS_LIMITS_MAX * limits.min().expect("a rule has at least one limit");
        let excess = actual.saturating_sub(charge.cost);
        if excess > excess_max {
            return Err(ReceiptError::Excess { rule: charge.rule().to_owned(), excess, excess_max });
        }
    }
    Ok(cost.expect("a receipt has at least one charge"))
}
