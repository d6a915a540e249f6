//! The local policy: while the store fails, limits within this process at a share of the rule's.
//!
//! A process of a fleet of n that gives each rule the share 1/n admits what is its part, and the fleet no more than the
//! limit on top of what the store had admitted. The local states are kept warm: what the store admits for this process is
//! charged here too, so an outage does not begin with empty states. A cost above the share is denied without a wait.
//!
//! States live in a memory store of their own with a budget of its own. At the budget new keys are denied; admissions of
//! the store are then no longer charged here.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;

use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::error::StoreError;
use crate::rule::{Decimal, OnStoreError, Rule};
use crate::store::MemoryStore;
use crate::time::SystemClock;

/// Memory for the states of all rules.
const BUDGET_BYTES: u64 = 64 << 20;
/// Rules at a share that are kept. Inline rules are new in every request once their table is full.
const RULES_MAX: usize = 4_096;
/// The most that a state takes notice of, in multiples of its limit: as a settlement.
const USED_MAX: u64 = 16;

/// The limits at a share, and their states.
#[derive(Debug)]
pub(super) struct LocalLimits {
    store: MemoryStore<SystemClock>,
    /// Rules at a share, by the id of the whole rule.
    rules: RwLock<HashMap<(u64, Decimal), Arc<Rule>, RandomState>>,
}

impl LocalLimits {
    pub(super) fn new() -> Self {
        let store = MemoryStore::with_budget(BUDGET_BYTES).expect("the budget is above the least one");
        Self { store, rules: RwLock::default() }
    }

    /// Decides an admission that the store did not answer. Asks whose own policy is to allow pass.
    pub(super) fn decide<'a>(
        &self,
        now_us: u64,
        policy: Option<OnStoreError>,
        admission: &Admission<'a>,
        error: StoreError,
        charging: bool,
    ) -> Result<Decision<'a>, StoreError> {
        let asks = admission.asks();
        let rules: Vec<Option<Arc<Rule>>> =
            asks.iter().map(|ask| Some(self.rule_at(ask.rule, share(policy, ask)?))).collect();
        let limited = asks.iter().zip(&rules);
        let limited: Vec<Charge<'_>> =
            limited.filter_map(|(ask, rule)| Some(Charge { rule: rule.as_deref()?, ..*ask })).collect();
        let mut answers = Vec::new();
        if !limited.is_empty() {
            let limited = Admission::of_asks(limited);
            let decided = if charging {
                self.store.check(now_us, &limited)
            } else {
                Ok(self.store.peek(now_us, &limited))
            };
            // Without room for the state the policy cannot hold the limit.
            answers = decided.map_err(|_| error.clone())?.state_answers().0;
        }
        let mut answers = answers.into_iter();
        let answered = rules.into_iter().map(|rule| rule.map(|rule| (rule, answers.next())));
        let answered = answered.map(|local| {
            let (rule, answer) = local?;
            Some((rule, answer.expect("an answer for each ask")))
        });
        Ok(Decision::degraded_locally(admission, answered, error))
    }

    /// Charges what the store has admitted.
    pub(super) fn keep_warm(&self, now_us: u64, policy: Option<OnStoreError>, charged: &[Charge<'_>]) {
        for ask in charged {
            let Some(share) = share(policy, ask) else { continue };
            let rule = self.rule_at(ask.rule, share);
            let used = self.store.inspect(now_us, &rule, ask.key).into_iter().map(|usage| usage.used).max();
            if used.unwrap_or(0).saturating_add(ask.cost) <= rule.cost_max().saturating_mul(USED_MAX) {
                self.store.charge_unchecked(now_us, &Charge { rule: &rule, ..*ask });
            }
        }
    }

    /// The rule whose limits are that share of the given ones, rounded down, and at least 1.
    fn rule_at(&self, rule: &Rule, share: Decimal) -> Arc<Rule> {
        let known = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(at_share) = known.get(&(rule.id(), share)) {
            return Arc::clone(at_share);
        }
        drop(known);
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if rules.len() >= RULES_MAX {
            rules.clear();
        }
        let at_share = || Arc::new(rule.at_share(share));
        Arc::clone(rules.entry((rule.id(), share)).or_insert_with(at_share))
    }
}

/// The share of the policy that counts for a charge; `None` if it is not limited locally: a shadow rule never denies.
fn share(policy: Option<OnStoreError>, ask: &Charge<'_>) -> Option<Decimal> {
    match policy.unwrap_or(ask.rule.on_store_error()) {
        OnStoreError::Local(share) if !ask.rule.shadow() => Some(share),
        _ => None,
    }
}
