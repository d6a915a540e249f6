//! What one rule keeps of one key: a state per limit.

use std::borrow::Cow;

use crate::algorithm::{State, Usage};
use crate::decision::Verdict;
use crate::few::Few;
use crate::receipt::Place;
use crate::rule::{Limit, Rule};

/// The states of all limits of one rule for one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    states: Vec<State>,
}

impl KeyState {
    /// A key that was never seen.
    pub(crate) fn new(limits: impl IntoIterator<Item = Limit>, generation: u64) -> Self {
        Self { states: limits.into_iter().map(|limit| State::new(limit, generation)).collect() }
    }

    /// The states as `rule` needs them, where it was not changed by [`KeyState::changed`]: a limit
    /// without a state of its geometry begins with the most that was used at the last charge, as one
    /// charge of that instant. Whoever looks, and when, sees the same.
    pub(crate) fn aligned(&self, rule: &Rule, generation: u64) -> Cow<'_, Self> {
        let same = self.states.len() == rule.limits().len()
            && self
                .states
                .iter()
                .zip(rule.limits())
                .all(|(state, limit)| limit.keeps_state_of(state.limit()));
        if same {
            return Cow::Borrowed(self);
        }
        let charged_us = self.states.iter().map(State::charged_us).max().unwrap_or(0);
        Cow::Owned(self.continued(rule, charged_us, generation))
    }

    /// The states after `rule` was changed at `now_us`: each limit goes on with the state of its
    /// geometry; one without begins with the most that is used, as one charge at `now_us`.
    pub(crate) fn changed(&self, rule: &Rule, now_us: u64, generation: u64) -> Self {
        let Self { states } = self.continued(rule, now_us, generation);
        let states = states.into_iter().zip(rule.limits());
        Self { states: states.map(|(state, limit)| state.changed(limit, now_us)).collect() }
    }

    fn continued(&self, rule: &Rule, at_us: u64, generation: u64) -> Self {
        let used_max = self.usages(at_us).map(|(_, usage)| usage.used).max().unwrap_or(0);
        let continued = |limit: &Limit| {
            let kept = self.states.iter().find(|state| limit.keeps_state_of(state.limit()));
            kept.cloned().unwrap_or_else(|| State::seeded(*limit, generation, at_us, used_max))
        };
        Self { states: rule.limits().iter().map(continued).collect() }
    }

    /// What an aligned state says to `cost`, without charging it.
    pub(crate) fn verdict<'a>(&self, rule: &'a Rule, now_us: u64, cost: u64) -> Verdict<'a> {
        let verdicts = self.states.iter().zip(rule.limits()).map(|(state, limit)| {
            let verdict = Verdict::new(rule, limit);
            if cost > limit.units() {
                // Only a shadow rule gets here: what it can never admit, it would deny.
                let Usage { used, reset_after_us } = state.usage(limit, now_us);
                return Verdict { allowed: false, used, reset_after_us, ..verdict };
            }
            let ruling = state.decide(limit, now_us, cost);
            Verdict {
                allowed: ruling.allowed(),
                used: ruling.usage.used,
                retry_after_us: ruling.retry_after_us,
                reset_after_us: ruling.usage.reset_after_us,
                ..verdict
            }
        });
        Verdict::join(verdicts).expect("a rule has at least one limit")
    }

    /// Charges an aligned state and says what is used then, and where the charge stands.
    pub(crate) fn charge<'a>(&mut self, rule: &'a Rule, now_us: u64, cost: u64) -> (Verdict<'a>, Few<Place>) {
        let places =
            self.states.iter_mut().zip(rule.limits()).map(|(state, limit)| state.charge(limit, now_us, cost));
        let places = places.collect();
        let verdicts = self.states.iter().zip(rule.limits()).map(|(state, limit)| {
            let Usage { used, reset_after_us } = state.usage(limit, now_us);
            Verdict { used, reset_after_us, ..Verdict::new(rule, limit) }
        });
        (Verdict::join(verdicts).expect("a rule has at least one limit"), places)
    }

    /// Charges `units` that were spent above an admission's cost.
    pub(crate) fn charge_excess(&mut self, now_us: u64, units: u64) {
        for state in &mut self.states {
            let limit = *state.limit();
            state.charge_excess(&limit, now_us, units);
        }
    }

    /// Takes back up to `units` of the charge that stands at `places`; says how many at most, as short
    /// windows may have forgotten what long ones remember.
    pub(crate) fn refund(&mut self, now_us: u64, places: &[Place], units: u64) -> u64 {
        let given = self.states.iter_mut().map(|state| {
            let place = places.iter().find(|place| state.limit().keeps_state_of(&place.limit));
            place.map_or(0, |place| state.refund(now_us, place, units))
        });
        given.max().unwrap_or(0)
    }

    /// Takes back up to `units` from the oldest charges of every limit; says how many at most.
    pub(crate) fn credit(&mut self, rule: &Rule, now_us: u64, units: u64) -> u64 {
        let given = self
            .states
            .iter_mut()
            .zip(rule.limits())
            .map(|(state, limit)| state.credit(limit, now_us, units));
        given.max().unwrap_or(0)
    }

    /// What is used of every limit of `rule`, for which the state is aligned.
    pub(crate) fn usages_under(&self, rule: &Rule, now_us: u64) -> impl Iterator<Item = (Limit, Usage)> {
        let limits = self.states.iter().zip(rule.limits());
        limits.map(move |(state, limit)| (*limit, state.usage(limit, now_us)))
    }

    /// Every limit under which it was last kept, with what is used of it.
    pub fn usages(&self, now_us: u64) -> impl Iterator<Item = (Limit, Usage)> {
        self.states.iter().map(move |state| (*state.limit(), state.usage(state.limit(), now_us)))
    }

    /// Bytes that it takes, on the heap included.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.states.iter().map(State::memory_bytes).sum::<usize>()
    }
}
