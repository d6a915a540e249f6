//! Model of `gcra`: a backlog that drains by the limit per window.
//!
//! Judges `algorithm/gcra.rs` and, in `slidegate-redis/scripts`, `gcra.lua` and `fast-gcra.lua`: change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::limit_model::ModelPlace;
use crate::rule::Limit;

/// The backlog at an instant, in parts of which W make a unit and `drain` leave in a microsecond.
#[derive(Debug, Clone, Default)]
pub(super) struct Gcra {
    /// When it was last charged, credited or changed.
    as_of_us: u128,
    /// The backlog at that instant.
    backlog: u128,
    /// Parts that drain in a microsecond: the limit at that time.
    drain: u128,
    /// Units taken out of the line so far. A charge's stretch is assumed to have moved by all units that were taken
    /// out after it.
    given_back: u128,
}

impl Gcra {
    /// The backlog at `at_us`, which is not earlier than what it remembers.
    fn backlog(&self, at_us: u128) -> u128 {
        self.backlog.saturating_sub((at_us - self.as_of_us).saturating_mul(self.drain))
    }

    /// Sets the backlog at `at_us`, draining by `limit` from there on.
    fn set(&mut self, limit: &Limit, at_us: u128, backlog: u128) {
        if self.drain != u128::from(limit.units()) {
            // Stretches that drained at another rate are not refunded: all of them count as given back.
            self.given_back += self.backlog(at_us).div_ceil(limit.window_us().into());
        }
        *self = Self { as_of_us: at_us, backlog, drain: limit.units().into(), given_back: self.given_back };
    }
}

impl AlgorithmModel for Gcra {
    fn duplicate(&self) -> Box<dyn AlgorithmModel> {
        Box::new(self.clone())
    }

    fn remembers_us(&self, _limit: &Limit) -> u128 {
        self.as_of_us
    }

    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount {
        Amount::of_parts(self.backlog(at_us), limit.window_us().into())
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        let backlog = self.backlog(at_us) + cost * u128::from(limit.window_us());
        self.set(limit, at_us, backlog);
        at_us * self.drain + backlog
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        if u128::from(place.limit.units()) != self.drain {
            return 0;
        }
        let moved = (self.given_back - place.given_back) * u128::from(limit.window_us());
        let of_charge_on = place.at.saturating_sub(at_us * self.drain).saturating_sub(moved);
        let whole_units = of_charge_on.min(self.backlog(at_us)) / u128::from(limit.window_us());
        let given = units.min(whole_units);
        if given > 0 {
            self.set(&place.limit, at_us, self.backlog(at_us) - given * u128::from(limit.window_us()));
            self.given_back += given;
        }
        given
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        let given = self.backlog(at_us).min(units * u128::from(limit.window_us()));
        if given > 0 {
            self.set(limit, at_us, self.backlog(at_us) - given);
            self.given_back += given.div_ceil(limit.window_us().into());
        }
    }

    /// The backlog to the part, not rounded up to units.
    fn set_back(&self, _limit: &Limit, from_us: u128, to_us: u128) -> (Box<dyn AlgorithmModel>, u128) {
        let backlog = self.backlog(from_us);
        let moved = Self { as_of_us: to_us, backlog, drain: self.drain, given_back: 0 };
        (Box::new(moved), to_us * self.drain + backlog)
    }

    fn given_back(&self) -> u128 {
        self.given_back
    }

    fn change(&mut self, limit: &Limit, at_us: u128) {
        self.set(limit, at_us, self.backlog(at_us));
    }
}

/// The instant from which the charge at `place` no longer counts: the end of its stretch, rounded up.
pub(super) fn expires_us(place: &ModelPlace) -> u128 {
    place.at.div_ceil(place.limit.units().into())
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::LimitModel;
    use super::super::samples::{SECOND_US, limit};
    use crate::algorithm::Usage;
    use crate::rule::Algorithm;

    #[test]
    fn the_backlog_drains_by_the_limit_per_window() {
        let limit = limit("3/1s", Algorithm::Gcra);
        let mut model = LimitModel::new(limit);
        let place = model.charge(&limit, 100, 3);
        assert_eq!(LimitModel::expires_us(&place), 100 + SECOND_US);
        // One unit drains in 333,333 1/3 us.
        for (cost, retry_after_us) in [(1, 333_334), (2, 666_667), (3, 1_000_000)] {
            assert_eq!(model.decide(&limit, 100, cost).retry_after_us, retry_after_us);
        }
        assert_eq!(model.usage(&limit, 100 + 333_333).used, 3, "2 and a millionth, rounded up");
        let next = model.charge(&limit, 100 + 333_334, 1);
        assert_eq!(LimitModel::expires_us(&next), 100 + 1_333_334, "1,333,333 1/3, rounded up");
    }

    #[test]
    fn a_refund_gives_back_what_has_not_drained() {
        let limit = limit("10/10s", Algorithm::Gcra);
        let mut model = LimitModel::new(limit);
        let first = model.charge(&limit, 0, 4);
        let second = model.charge(&limit, 0, 4);
        // At 2.5 s the first stretch goes on for 1.5 s, the second ends at 8 s.
        assert_eq!(model.clone().refund(2_500_000, &first, 4), 1);
        assert_eq!(model.refund(2_500_000, &second, 4), 4);
        assert_eq!(model.usage(&limit, 2_500_000), Usage { used: 2, reset_after_us: 1_500_000 });
        assert_eq!(model.refund(4 * SECOND_US, &first, 4), 0);
    }

    #[test]
    fn a_credit_shortens_the_stretch() {
        let limit = limit("10/10s", Algorithm::Gcra);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 0, 4);
        assert_eq!(model.credit(&limit, 1_500_000, 1), 1);
        assert_eq!(model.usage(&limit, 1_500_000), Usage { used: 2, reset_after_us: 1_500_000 });
        assert_eq!(model.credit(&limit, 1_500_000, 9), 2);
        assert_eq!(model.credit(&limit, 1_500_000, 9), 0);
    }

    #[test]
    fn time_stands_still_when_the_clock_is_set_back() {
        let limit = limit("10/10s", Algorithm::Gcra);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 20 * SECOND_US, 4);
        assert_eq!(model.usage(&limit, 19 * SECOND_US), Usage { used: 4, reset_after_us: 5 * SECOND_US });
        assert_eq!(model.decide(&limit, 19 * SECOND_US, 6).retry_after_us, 0);
        assert_eq!(model.decide(&limit, 19 * SECOND_US, 7).retry_after_us, 2 * SECOND_US);
    }

    #[test]
    fn another_limit_keeps_the_units_and_drains_anew() {
        let (slow, fast) = (limit("10/10s", Algorithm::Gcra), limit("20/10s", Algorithm::Gcra));
        let mut model = LimitModel::new(slow);
        let place = model.charge(&slow, 0, 6);
        let ruling = model.decide(&fast, 2 * SECOND_US, 20);
        assert_eq!(ruling.retry_after_us, 4 * SECOND_US, "until it is changed it drains as it did");
        let mut model = model.changed(&fast, 2 * SECOND_US);
        assert_eq!(model.usage(&fast, 2 * SECOND_US), Usage { used: 4, reset_after_us: 2 * SECOND_US });
        assert_eq!(model.refund(2 * SECOND_US, &place, 6), 0, "the place was measured at another speed");
        let strict = limit("2/10s", Algorithm::Gcra);
        let model = model.changed(&strict, 2 * SECOND_US);
        assert_eq!(model.decide(&strict, 2 * SECOND_US, 1).retry_after_us, 15 * SECOND_US);
    }
}
