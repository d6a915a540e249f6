//! The model of one limit for one key, of any algorithm.

use super::algorithm_model::{self, AlgorithmModel};
use super::amount::wait_us;
use super::{compact_log, fixed_window, gcra, sliding_buckets, sliding_counter, sliding_log};
use crate::algorithm::{Ruling, USED_MAX, Usage};
use crate::rule::{Algorithm, Limit};

/// The model of one limit for one key.
#[derive(Debug)]
pub struct LimitModel {
    limit: Limit,
    state: Box<dyn AlgorithmModel>,
    /// When the last of its places expires.
    ends_us: u64,
}

impl Clone for LimitModel {
    fn clone(&self) -> Self {
        Self { state: self.state.duplicate(), ..*self }
    }
}

/// The place of a charge, with the limit under which it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelPlace {
    pub(super) limit: Limit,
    /// A stamp, a bucket number, a window number, or the end of the occupied stretch times the limit.
    pub(super) at: u128,
    /// Units that `gcra` had given back by then.
    pub(super) given_back: u128,
}

impl LimitModel {
    /// The model of a new key.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { limit, state: algorithm_model::new_state(&limit), ends_us: 0 }
    }

    /// The latest possible instant of the last charge.
    pub(super) fn charged_by_us(&self) -> u64 {
        u64::try_from(self.state.charged_by_us(&self.limit)).expect("time fits 64 bits")
    }

    /// Whether by `now_us` nothing is used and no receipt could give anything back.
    pub(super) fn has_ended(&self, now_us: u64) -> bool {
        self.ends_us <= now_us && self.usage(&self.limit, now_us).used == 0
    }

    /// The limit as it was at the last charge, credit or live change.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// What is in use at `now_us`.
    #[must_use]
    pub fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let used_at = |at_us| self.state.in_use(limit, self.effective_us(limit, at_us)).rounded_up();
        Usage { used: used_at(now_us.into()), reset_after_us: wait_us(now_us, |at_us| used_at(at_us) == 0) }
    }

    /// Decides on `cost` units, at most the limit, without charging them.
    #[must_use]
    pub fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        assert!(cost <= limit.units(), "a cost above the limit never passes: there is no wait to find");
        let passes_at = |at_us| {
            self.state.in_use(limit, self.effective_us(limit, at_us)).has_room_for(cost, limit.units())
        };
        Ruling { usage: self.usage(limit, now_us), retry_after_us: wait_us(now_us, passes_at) }
    }

    /// Charges `cost` units at `now_us`, whether or not they pass.
    pub fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> ModelPlace {
        assert!(limit.keeps_state_of(&self.limit), "another geometry needs `changed` first");
        let at_us = self.effective_us(limit, now_us.into());
        self.limit = *limit;
        let at = self.state.charge(limit, at_us, cost.into());
        let place = ModelPlace { limit: *limit, at, given_back: self.state.given_back() };
        self.ends_us = self.ends_us.max(Self::expires_us(&place));
        place
    }

    /// Charges `units` at `now_us`, at most as many as keep `used` within [`USED_MAX`].
    pub fn charge_excess(&mut self, limit: &Limit, now_us: u64, units: u64) {
        let units = units.min(USED_MAX.saturating_sub(self.usage(limit, now_us).used));
        if units > 0 {
            self.charge(limit, now_us, units);
        }
    }

    /// Takes back up to `units` of the charge at `place`; returns how many.
    pub fn refund(&mut self, now_us: u64, place: &ModelPlace, units: u64) -> u64 {
        if !self.limit.keeps_state_of(&place.limit) {
            return 0;
        }
        let at_us = self.effective_us(&self.limit, now_us.into());
        let given = self.state.refund(&self.limit, at_us, place, units.into());
        u64::try_from(given).expect("at most `units`")
    }

    /// Takes back up to `units`, oldest first; returns by how much `used` fell.
    pub fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let used_before = self.usage(limit, now_us).used;
        let units = units.min(used_before);
        if units == 0 {
            return 0;
        }
        let at_us = self.effective_us(limit, now_us.into());
        self.limit = *limit;
        self.state.credit(limit, at_us, units.into());
        used_before - self.usage(limit, now_us).used
    }

    /// The model after a change of its limit to `limit`, of the same geometry, at `now_us`.
    #[must_use]
    pub fn changed(mut self, limit: &Limit, now_us: u64) -> Self {
        assert!(limit.keeps_state_of(&self.limit), "another geometry begins another state");
        let at_us = self.effective_us(limit, now_us.into());
        self.state.change(limit, at_us);
        self.limit = *limit;
        self
    }

    /// A new model that starts with `used` units as one charge at `now_us`.
    #[must_use]
    pub fn seeded(limit: Limit, now_us: u64, used: u64) -> Self {
        let mut fresh = Self::new(limit);
        fresh.charge_excess(&limit, now_us, used);
        fresh
    }

    /// Follows a clock that was set back from `from_us` to `to_us`: if time has passed `to_us` here, what is used at `from_us`
    /// becomes one charge at `to_us`. Returns whether it did.
    pub(super) fn set_back(&mut self, from_us: u64, to_us: u64) -> bool {
        if self.state.remembers_us(&self.limit) <= to_us.into() {
            return false;
        }
        let from_us = self.effective_us(&self.limit, from_us.into());
        let (state, at) = self.state.set_back(&self.limit, from_us, to_us.into());
        let ends_us = Self::expires_us(&ModelPlace { limit: self.limit, at, given_back: 0 });
        *self = Self { limit: self.limit, state, ends_us };
        true
    }

    /// The instant from which the charge at `place` no longer counts.
    #[must_use]
    pub fn expires_us(place: &ModelPlace) -> u64 {
        let expires_us = match place.limit.algorithm() {
            Algorithm::SlidingLog => sliding_log::expires_us(place),
            Algorithm::CompactLog(_) => compact_log::expires_us(place),
            Algorithm::SlidingBuckets(_, edge) => sliding_buckets::expires_us(place, edge),
            Algorithm::SlidingCounter => sliding_counter::expires_us(place),
            Algorithm::FixedWindow => fixed_window::expires_us(place),
            Algorithm::Gcra => gcra::expires_us(place),
        };
        u64::try_from(expires_us).unwrap_or(u64::MAX)
    }

    /// Time does not run backwards past the state's newest instant.
    fn effective_us(&self, limit: &Limit, at_us: u128) -> u128 {
        at_us.max(self.state.remembers_us(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{SECOND_US, limit};
    use super::*;

    /// Asks for `count` single units at `now_us`; returns how many passed.
    fn admitted(model: &mut LimitModel, now_us: u64, count: u64) -> u64 {
        let limit = *model.limit();
        let mut passed = 0;
        for _ in 0..count {
            if model.decide(&limit, now_us, 1).allowed() {
                model.charge(&limit, now_us, 1);
                passed += 1;
            }
        }
        passed
    }

    #[test]
    fn worked_example_5_the_boundary_at_scale() {
        let boundary_us = 1_745_000_150 * SECOND_US;
        for (algorithm, expected) in Algorithm::ALL.into_iter().zip([50, 50, 50, 55, 100, 60]) {
            let mut model = LimitModel::new(limit("50/10s", algorithm));
            let first = admitted(&mut model, boundary_us - SECOND_US, 50);
            let second = admitted(&mut model, boundary_us + SECOND_US, 50);
            assert_eq!((first, first + second), (50, expected), "{algorithm}");
        }
        let noon_us = 1_745_064_000 * SECOND_US;
        for (algorithm, expected) in [(Algorithm::FixedWindow, 200), (Algorithm::SlidingLog, 100)] {
            let mut model = LimitModel::new(limit("100/1m", algorithm));
            let both =
                [noon_us - SECOND_US, noon_us + SECOND_US].map(|at_us| admitted(&mut model, at_us, 100));
            assert_eq!(both.iter().sum::<u64>(), expected, "{algorithm}");
        }
    }

    #[test]
    fn another_geometry_starts_with_the_old_use_stamped_now() {
        let per_minute = limit("10/1m", Algorithm::SlidingLog);
        let mut model = LimitModel::new(per_minute);
        let place = model.charge(&per_minute, 100 * SECOND_US, 4);
        for (algorithm, reset_s) in
            [(Algorithm::SlidingLog, 3_600), (Algorithm::FixedWindow, 3_600 - 130), (Algorithm::Gcra, 1_440)]
        {
            let hourly = limit("10/1h", algorithm);
            let used = model.usage(&per_minute, 130 * SECOND_US).used;
            let mut changed = LimitModel::seeded(hourly, 130 * SECOND_US, used);
            let expected = Usage { used: 4, reset_after_us: reset_s * SECOND_US };
            assert_eq!(changed.usage(&hourly, 130 * SECOND_US), expected, "{algorithm}");
            assert_eq!(changed.refund(130 * SECOND_US, &place, 4), 0, "a receipt of another geometry");
        }
        let raised = limit("20/1m", Algorithm::SlidingLog);
        let mut kept = model.changed(&raised, 130 * SECOND_US);
        assert_eq!(kept.usage(&raised, 130 * SECOND_US), Usage { used: 4, reset_after_us: 30 * SECOND_US });
        assert_eq!(kept.refund(130 * SECOND_US, &place, 4), 4, "the same geometry");
    }

    #[test]
    fn an_excess_stops_at_the_most_that_is_counted() {
        for algorithm in Algorithm::ALL {
            let limit = limit("1000000000/1m", algorithm);
            let mut model = LimitModel::new(limit);
            model.charge_excess(&limit, SECOND_US, 160);
            assert_eq!(model.usage(&limit, SECOND_US).used, 160, "{algorithm}");
            model.charge_excess(&limit, SECOND_US, u64::MAX);
            model.charge_excess(&limit, SECOND_US, 1);
            assert_eq!(model.usage(&limit, SECOND_US).used, USED_MAX, "{algorithm}");
        }
    }
}
