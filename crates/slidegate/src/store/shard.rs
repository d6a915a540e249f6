//! What one lock guards: the states of the keys that hash to it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::key_state::KeyState;
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::receipt::{Applied, ReceiptCharge};
use crate::rule::{Limit, Rule};

/// States by rule name and key.
#[derive(Debug, Default)]
pub(super) struct Shard {
    states: HashMap<Arc<str>, HashMap<Box<str>, KeyState>>,
}

impl Shard {
    pub(super) fn state(&self, rule: &str, key: &str) -> Option<&KeyState> {
        self.states.get(rule)?.get(key)
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
        generation: u64,
    ) -> &mut KeyState {
        match self.states.entry(Arc::clone(rule)).or_default().entry(key.into()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(KeyState::new(limits, generation)),
        }
    }

    /// The state of a key as `rule` needs it, for a look.
    pub(super) fn view(&self, rule: &Rule, key: &str) -> Cow<'_, KeyState> {
        match self.state(rule.name(), key) {
            Some(state) => state.aligned(rule, 0),
            None => Cow::Owned(KeyState::new(rule.limits().iter().copied(), 0)),
        }
    }

    /// What the rule of `ask` says to it, without charging.
    pub(super) fn verdict(&self, now_us: u64, ask: &Charge<'_>) -> Verdict {
        self.view(ask.rule, ask.key.as_str()).verdict(ask.rule, now_us, ask.cost)
    }

    /// Charges `ask`, which was decided.
    pub(super) fn charge(
        &mut self,
        now_us: u64,
        ask: &Charge<'_>,
        generation: u64,
    ) -> (Verdict, ReceiptCharge) {
        let (rule, key) = (ask.rule.shared_name(), ask.key.as_str());
        let state = self.state_or_new(&rule, key, ask.rule.limits().iter().copied(), generation);
        if let Cow::Owned(aligned) = state.aligned(ask.rule, generation) {
            *state = aligned;
        }
        let (verdict, places) = state.charge(ask.rule, now_us, ask.cost);
        (verdict, ReceiptCharge { rule, key: key.into(), cost: ask.cost, places })
    }

    pub(super) fn credit(&mut self, now_us: u64, charge: &Charge<'_>, generation: u64) -> Applied {
        let Charge { rule, key, cost: units } = *charge;
        let Some(state) = self.state_mut(rule.name(), key.as_str()) else { return Applied::default() };
        let mut aligned = state.aligned(rule, generation).into_owned();
        let units = aligned.credit(rule, now_us, units);
        *state = aligned;
        Applied { applied: units > 0, units }
    }

    pub(super) fn reset(&mut self, now_us: u64, rule: &str, key: &str) -> Applied {
        let state = self.states.get_mut(rule).and_then(|keys| keys.remove(key));
        let used = state.and_then(|state| state.usages(now_us).map(|(_, usage)| usage.used).max());
        let units = used.unwrap_or(0);
        Applied { applied: units > 0, units }
    }

    pub(super) fn change(&mut self, now_us: u64, rule: &Rule, generation: u64) {
        for state in self.states.get_mut(rule.name()).into_iter().flat_map(HashMap::values_mut) {
            *state = state.changed(rule, now_us, generation);
        }
    }

    /// Drops every state of which nothing is used; says how many.
    pub(super) fn sweep(&mut self, now_us: u64) -> usize {
        let mut dropped = 0;
        for keys in self.states.values_mut() {
            let before = keys.len();
            keys.retain(|_, state| state.usages(now_us).any(|(_, usage)| usage.used > 0));
            dropped += before - keys.len();
            keys.shrink_to_fit();
        }
        self.states.retain(|_, keys| !keys.is_empty());
        dropped
    }
}
