//! The states of one rule for one key: one per limit.

use crate::algorithm::{State, Usage};
use crate::rule::{Limit, Rule};

/// A copy of the states of all limits of one rule for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    states: Vec<State>,
}

impl KeyState {
    pub(in crate::store) fn of(states: Vec<State>) -> Self {
        Self { states }
    }

    /// The states of a key that was never seen.
    pub(in crate::store) fn new(limits: &[Limit]) -> Self {
        Self { states: limits.iter().copied().map(State::new).collect() }
    }

    /// Charges units that were spent above an admission's cost.
    pub(in crate::store) fn charge_excess(&mut self, now_us: u64, units: u64) {
        for state in &mut self.states {
            let limit = *state.limit();
            state.charge_excess(&limit, now_us, units);
        }
    }

    pub(in crate::store) fn states(&self) -> &[State] {
        &self.states
    }

    pub(in crate::store) fn states_mut(&mut self) -> &mut [State] {
        &mut self.states
    }

    /// Whether there is a state of the right geometry for every limit, in order.
    pub(in crate::store) fn fits(&self, limits: &[Limit]) -> bool {
        self.states.len() == limits.len()
            && self.states.iter().zip(limits).all(|(state, limit)| limit.keeps_state_of(state.limit()))
    }

    pub(in crate::store) fn into_states(self) -> Vec<State> {
        self.states
    }

    /// The states adapted to other limits without an announced change. A limit without a state of its geometry starts
    /// with the largest use at the last charge, as one charge at the latest possible instant of that charge. The result
    /// does not depend on when it is computed.
    pub(in crate::store) fn adapted_to(&self, limits: &[Limit]) -> Self {
        let charged_by_us = self.states.iter().map(State::charged_by_us).max().unwrap_or(0);
        // Time does not run backwards past a state's last charge, so 0 is the instant of that charge.
        self.continued(limits, charged_by_us, self.used_max(0))
    }

    /// The states after a live change of `rule` at `now_us`: each limit continues the state of its geometry;
    /// one without starts with the largest use, as one charge at `now_us`.
    pub(in crate::store) fn changed(&self, rule: &Rule, now_us: u64) -> Self {
        let Self { states } = self.continued(rule.limits(), now_us, self.used_max(now_us));
        let states = states.into_iter().zip(rule.limits());
        Self { states: states.map(|(state, limit)| state.changed(limit, now_us)).collect() }
    }

    fn continued(&self, limits: &[Limit], at_us: u64, used: u64) -> Self {
        let continued = |limit: &Limit| {
            let kept = self.states.iter().find(|state| limit.keeps_state_of(state.limit()));
            kept.cloned().unwrap_or_else(|| State::seeded(*limit, at_us, used))
        };
        Self { states: limits.iter().map(continued).collect() }
    }

    /// Every limit, as of the last change of its state, with its usage.
    pub fn usages(&self, now_us: u64) -> impl Iterator<Item = (Limit, Usage)> {
        self.states.iter().map(move |state| (*state.limit(), state.usage(state.limit(), now_us)))
    }

    /// The most that is used of any limit.
    pub(in crate::store) fn used_max(&self, now_us: u64) -> u64 {
        self.usages(now_us).map(|(_, usage)| usage.used).max().unwrap_or(0)
    }
}
