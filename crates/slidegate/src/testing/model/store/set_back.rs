//! A clock that is set back, in the model of a store that follows it: all states change at once, at the first call after it.

use super::super::receipt::ModelReceipt;
use super::{ModelStore, VoidedReceipts};

/// A clock set back by this much is not followed: time stands still until it has caught up.
const TOLERANCE_US: u64 = 1_000_000;

/// The steps back of a clock, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct FollowedClock {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    /// The charges made before it.
    order: u64,
    /// The time before it.
    from_us: u64,
}

impl ModelStore {
    /// The model of a store that follows a clock that is set back by more than a second.
    #[must_use]
    pub fn following_the_clock() -> Self {
        Self { clock: Some(FollowedClock::default()), ..Self::default() }
    }

    /// What a call at `now_us` does first. If the clock was set back, the use of every state that was charged later than
    /// `now_us` becomes one charge now, and its receipts are void.
    pub fn follow_clock(&mut self, now_us: u64) {
        let from_us = self.noted_us.max(self.latest_us);
        let Some(clock) = self.clock.as_mut().filter(|_| from_us > now_us + TOLERANCE_US) else { return };
        clock.steps.push(Step { order: self.order, from_us });
        (self.noted_us, self.latest_us) = (now_us, self.latest_us.min(now_us));
        for (name, key_model) in &mut self.states {
            let voids = key_model.set_back(from_us, now_us).into_iter().map(|limit| VoidedReceipts {
                name: name.clone(),
                limit: Some(limit),
                order: self.order,
            });
            self.voids.extend(voids);
        }
    }

    /// The latest time before a step back that the receipt has seen: what had expired then stays expired.
    pub(super) fn expired_by_us(&self, receipt: &ModelReceipt) -> u64 {
        let steps = self.clock.iter().flat_map(|clock| &clock.steps);
        let after = |step: &&Step| receipt.charges.iter().any(|charge| charge.order <= step.order);
        steps.filter(after).map(|step| step.from_us).max().unwrap_or(0)
    }
}
