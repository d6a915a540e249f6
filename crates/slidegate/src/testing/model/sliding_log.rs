//! Model of `sliding-log`: all charges in (now - W, now] are in use.
//!
//! Judges `algorithm/sliding_log.rs` and, in `slidegate-redis/scripts`, `sliding-log.lua` and `fast-sliding-log.lua`:
//! change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::charge_sums::ChargeSums;
use super::limit_model::ModelPlace;
use crate::rule::Limit;

/// Every stamp that still has units.
///
/// A charge drops the stamps that have left the window. This is visible only if that charge is refunded and the
/// clock is then set back: the stamps do not return.
#[derive(Debug, Clone, Default)]
pub(super) struct SlidingLog {
    stamps: ChargeSums,
}

/// Whether a stamp lies in the window that ends at `at_us`.
fn is_live(limit: &Limit, stamp: u128, at_us: u128) -> bool {
    stamp + u128::from(limit.window_us()) > at_us
}

impl AlgorithmModel for SlidingLog {
    fn duplicate(&self) -> Box<dyn AlgorithmModel> {
        Box::new(self.clone())
    }

    fn remembers_us(&self, _limit: &Limit) -> u128 {
        self.stamps.newest_present()
    }

    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount {
        let live = self.stamps.oldest_first().into_iter().filter(|sum| is_live(limit, sum.at, at_us));
        Amount::of_units(live.map(|sum| sum.units).sum())
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        self.stamps.forget_before((at_us + 1).saturating_sub(limit.window_us().into()));
        self.stamps.add(at_us, cost);
        at_us
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        if is_live(limit, place.at, at_us) { self.stamps.take(place.at, units) } else { 0 }
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        let mut rest = units;
        for sum in self.stamps.oldest_first() {
            if is_live(limit, sum.at, at_us) {
                rest -= self.stamps.take(sum.at, rest);
            }
        }
    }

    fn change(&mut self, _limit: &Limit, _at_us: u128) {}
}

/// The instant from which the charge at `place` no longer counts.
pub(super) fn expires_us(place: &ModelPlace) -> u128 {
    place.at + u128::from(place.limit.window_us())
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::LimitModel;
    use super::super::samples::{SECOND_US, limit};
    use crate::algorithm::Usage;
    use crate::rule::Algorithm;

    #[test]
    fn worked_example_3_the_oldest_drops_out() {
        let limit = limit("5/60s", Algorithm::SlidingLog);
        let mut model = LimitModel::new(limit);
        for stamp_s in [3_650, 3_680, 3_695, 3_710] {
            model.charge(&limit, stamp_s * SECOND_US, 1);
        }
        let now_us = 3_720 * SECOND_US;
        assert_eq!(model.decide(&limit, now_us, 1).usage.used, 3);
        assert_eq!(model.decide(&limit, now_us, 2).retry_after_us, 0);
        assert_eq!(model.decide(&limit, now_us, 3).retry_after_us, 20 * SECOND_US, "when 3680 drops out");
        model.charge(&limit, now_us, 1);
        assert_eq!(model.usage(&limit, now_us), Usage { used: 4, reset_after_us: 60 * SECOND_US });
        for (after_s, used) in [(20, 3), (35, 2), (50, 1), (60, 0)] {
            assert_eq!(model.usage(&limit, now_us + after_s * SECOND_US).used, used);
            assert_eq!(model.usage(&limit, now_us + after_s * SECOND_US - 1).used, used + 1);
        }
    }

    #[test]
    fn worked_example_10_the_daily_quota() {
        let limit = limit("9500/24h", Algorithm::SlidingLog);
        let mut model = LimitModel::new(limit);
        for call in 0..95 {
            assert!(model.decide(&limit, call * 60 * SECOND_US, 100).allowed());
            model.charge(&limit, call * 60 * SECOND_US, 100);
        }
        let ruling = model.decide(&limit, 95 * 60 * SECOND_US, 100);
        assert_eq!((ruling.usage.used, ruling.retry_after_us), (9_500, (86_400 - 95 * 60) * SECOND_US));
        assert_eq!(
            model.decide(&limit, 95 * 60 * SECOND_US, 101).retry_after_us,
            (86_400 - 94 * 60) * SECOND_US
        );
    }

    #[test]
    fn refunds_lower_their_stamp_and_credits_the_oldest() {
        let limit = limit("10/1s", Algorithm::SlidingLog);
        let mut model = LimitModel::new(limit);
        let first = model.charge(&limit, 100, 3);
        let second = model.charge(&limit, 100, 2);
        let third = model.charge(&limit, 200, 4);
        assert_eq!(first, second, "one stamp is one sum");
        assert_eq!(model.credit(&limit, 300, 4), 4);
        assert_eq!(model.refund(300, &first, 3), 1, "no more than is there");
        assert_eq!(model.usage(&limit, 300).used, 4);
        assert_eq!(LimitModel::expires_us(&third), 200 + SECOND_US);
        assert_eq!(model.clone().refund(199 + SECOND_US, &third, 9), 4);
        assert_eq!(model.refund(200 + SECOND_US, &third, 9), 0);
        assert_eq!(model.credit(&limit, 300, 9), 4);
        assert_eq!(model.credit(&limit, 300, 9), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_stands_still_at_the_newest_stamp() {
        let limit = limit("10/1s", Algorithm::SlidingLog);
        let mut model = LimitModel::new(limit);
        let older = model.charge(&limit, 5_000, 3);
        let newest = model.charge(&limit, 9_000, 6);
        assert_eq!(model.decide(&limit, 2_000, 1).retry_after_us, 0);
        assert_eq!(
            model.decide(&limit, 2_000, 2).retry_after_us,
            3_000 + SECOND_US,
            "counted from the clock"
        );
        let late = model.charge(&limit, 2_000, 1);
        assert_eq!(late.at, 9_000);
        model.refund(2_000, &newest, 7);
        assert_eq!(model.charge(&limit, 2_000, 1).at, 5_000, "the newer units are gone");
        assert_eq!(model.refund(2_000, &older, 4), 4);
        assert_eq!(model.charge(&limit, 2_000, 1).at, 5_000, "the last stamp that was emptied");
    }

    #[test]
    fn a_charge_drops_expired_stamps_for_good() {
        let limit = limit("10/1ms", Algorithm::SlidingLog);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 1_000, 3);
        let newest = model.charge(&limit, 2_000, 1);
        model.refund(2_000, &newest, 1);
        assert_eq!(model.usage(&limit, 1_500).used, 0);
        assert_eq!(model.charge(&limit, 1_500, 1).at, 2_000);
    }
}
