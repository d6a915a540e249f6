//! What one lock guards: the states of the keys that hash to it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::key_state::KeyState;
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::receipt::{Applied, ReceiptCharge, ReceiptId};
use crate::rule::{Limit, Rule};

/// States by rule name and key.
#[derive(Debug)]
pub(super) struct Shard {
    states: HashMap<Box<str>, HashMap<Box<str>, KeyState>>,
    /// Which of the shards it is.
    number: u64,
    /// Numbers handed out so far.
    sequence: u64,
}

impl Shard {
    pub(super) fn new(number: usize) -> Self {
        Self { states: HashMap::new(), number: number as u64, sequence: 0 }
    }

    /// A number that this shard has not handed out before.
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// An id that no shard has handed out before.
    pub(super) fn next_id(&mut self) -> ReceiptId {
        ReceiptId(u128::from(self.number) << 64 | u128::from(self.next()))
    }

    pub(super) fn state(&self, rule: &str, key: &str) -> Option<&KeyState> {
        self.states.get(rule)?.get(key)
    }

    pub(super) fn state_mut(&mut self, rule: &str, key: &str) -> Option<&mut KeyState> {
        self.states.get_mut(rule)?.get_mut(key)
    }

    /// The state of a key, begun under `limits` if there is none.
    pub(super) fn state_or_new(
        &mut self,
        rule: &str,
        key: &str,
        limits: impl IntoIterator<Item = Limit>,
    ) -> &mut KeyState {
        // Names are copied only for what is new.
        if self.state(rule, key).is_none() {
            let state = KeyState::new(limits, self.next());
            self.states.entry(rule.into()).or_default().insert(key.into(), state);
        }
        self.state_mut(rule, key).expect("it is there by now")
    }

    /// The state of a key as `rule` needs it, for a look.
    pub(super) fn view(&self, rule: &Rule, key: &str) -> Cow<'_, KeyState> {
        match self.state(rule.name(), key) {
            Some(state) => state.aligned(rule, 0),
            None => Cow::Owned(KeyState::new(rule.limits().iter().copied(), 0)),
        }
    }

    /// What the rule of `ask` says to it, without charging.
    pub(super) fn verdict<'a>(&self, now_us: u64, ask: &Charge<'a>) -> Verdict<'a> {
        self.view(ask.rule, ask.key.as_str()).verdict(ask.rule, now_us, ask.cost)
    }

    /// Charges `ask`, which was decided.
    pub(super) fn charge<'a>(&mut self, now_us: u64, ask: &Charge<'a>) -> (Verdict<'a>, ReceiptCharge<'a>) {
        let Charge { rule, key, cost } = *ask;
        let generation = self.next();
        let state = self.state_or_new(rule.name(), key.as_str(), rule.limits().iter().copied());
        if let Cow::Owned(aligned) = state.aligned(rule, generation) {
            *state = aligned;
        }
        let (verdict, places) = state.charge(rule, now_us, cost);
        let (rule, key) = (rule.name().into(), key.as_str().into());
        (verdict, ReceiptCharge { rule, key, cost, places })
    }

    pub(super) fn credit(&mut self, now_us: u64, charge: &Charge<'_>) -> Applied {
        let Charge { rule, key, cost: units } = *charge;
        let generation = self.next();
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

    pub(super) fn change(&mut self, now_us: u64, rule: &Rule) {
        let generation = self.next();
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
