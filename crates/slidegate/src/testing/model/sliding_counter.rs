//! Model of `sliding-counter`: this window's units, and the overlapping share of the previous window's.
//!
//! Judges `algorithm/sliding_counter.rs` and, in `slidegate-redis/scripts`, `sliding-counter.lua` and
//! `fast-sliding-counter.lua`: change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::charge_sums::ChargeSums;
use super::limit_model::ModelPlace;
use crate::rule::Limit;

/// The units of every clock-aligned window.
#[derive(Debug, Clone, Default)]
pub(super) struct SlidingCounter {
    windows: ChargeSums,
}

/// The window of an instant, and the weight of the window before it in microseconds.
fn window_and_overlap(limit: &Limit, at_us: u128) -> (u128, u128) {
    let window_us = u128::from(limit.window_us());
    (at_us / window_us, window_us - at_us % window_us)
}

impl SlidingCounter {
    /// The units of the window before `number`; 0 for the first window.
    fn before(&self, number: u128) -> u128 {
        number.checked_sub(1).map_or(0, |before| self.windows.at(before))
    }
}

impl AlgorithmModel for SlidingCounter {
    fn duplicate(&self) -> Box<dyn AlgorithmModel> {
        Box::new(self.clone())
    }

    fn remembers_us(&self, limit: &Limit) -> u128 {
        self.windows.newest_charged() * u128::from(limit.window_us())
    }

    fn charged_by_us(&self, limit: &Limit) -> u128 {
        (self.windows.newest_charged() + 1) * u128::from(limit.window_us()) - 1
    }

    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount {
        let window_us = u128::from(limit.window_us());
        let (number, overlap_us) = window_and_overlap(limit, at_us);
        let parts = self.before(number) * overlap_us + self.windows.at(number) * window_us;
        Amount::of_parts(parts, window_us)
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        let (number, _) = window_and_overlap(limit, at_us);
        self.windows.add(number, cost);
        number
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        let (number, _) = window_and_overlap(limit, at_us);
        if place.at == number || place.at + 1 == number { self.windows.take(place.at, units) } else { 0 }
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        let window_us = u128::from(limit.window_us());
        let (number, overlap_us) = window_and_overlap(limit, at_us);
        let mut rest_parts = units * window_us;
        if let Some(before) = number.checked_sub(1) {
            rest_parts -= self.windows.take(before, rest_parts / overlap_us) * overlap_us;
        }
        self.windows.take(number, rest_parts / window_us);
    }

    fn change(&mut self, _limit: &Limit, _at_us: u128) {}
}

/// The instant from which the charge at `place` no longer counts.
pub(super) fn expires_us(place: &ModelPlace) -> u128 {
    (place.at + 2) * u128::from(place.limit.window_us())
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::LimitModel;
    use super::super::samples::{SECOND_US, limit};
    use crate::algorithm::Usage;
    use crate::rule::{Algorithm, Limit};

    /// A window that began at `start_us`, with so many units in the one before and in itself.
    fn counted(limit: &Limit, start_us: u64, previous: u64, current: u64) -> LimitModel {
        let mut model = LimitModel::new(*limit);
        model.charge(limit, start_us - 1, previous);
        model.charge(limit, start_us, current);
        model
    }

    #[test]
    fn worked_example_1_a_weighted_hour() {
        let limit = limit("100/60m", Algorithm::SlidingCounter);
        let hour_us = 3_600 * SECOND_US;
        let model = counted(&limit, 480_000 * hour_us, 70, 40);
        let now_us = 480_000 * hour_us + 2_250 * SECOND_US;
        let ruling = model.decide(&limit, now_us, 1);
        assert!(ruling.allowed());
        assert_eq!(ruling.usage.used, 67, "66.25, rounded up");
        assert_eq!(model.decide(&limit, now_us, 33).retry_after_us, 0, "66.25 + 33 is within 100");
        // 34 pass when the previous 70 weigh 26: 26 / 70 of the hour before its end, rounded up.
        let passes_us = 480_000 * hour_us + (44 * hour_us).div_ceil(70);
        assert_eq!(now_us + model.decide(&limit, now_us, 34).retry_after_us, passes_us);
    }

    #[test]
    fn worked_example_2_a_weighted_minute() {
        let limit = limit("5/60s", Algorithm::SlidingCounter);
        let (now_us, start_us) = (1_745_000_145 * SECOND_US, 29_083_335 * 60 * SECOND_US);
        assert_eq!(now_us - start_us, 45 * SECOND_US);
        for (previous, used, allowed) in [(8, 5, false), (4, 4, true), (6, 5, false)] {
            let model = counted(&limit, start_us, previous, 3);
            let ruling = model.decide(&limit, now_us, 1);
            assert_eq!((ruling.usage.used, ruling.allowed()), (used, allowed), "previous {previous}");
        }
        let mut model = counted(&limit, start_us, 4, 3);
        assert_eq!(model.charge(&limit, now_us, 1).at, 29_083_335);
        assert_eq!(model.usage(&limit, now_us), Usage { used: 5, reset_after_us: 75 * SECOND_US });
        assert_eq!(counted(&limit, start_us, 6, 3).decide(&limit, now_us, 1).retry_after_us, 5 * SECOND_US);
        // 8 units weigh 1 when an eighth of the window is left: 7.5 s before its end.
        assert_eq!(counted(&limit, start_us, 8, 3).decide(&limit, now_us, 1).retry_after_us, 7_500_000);
    }

    #[test]
    fn a_wait_may_end_in_the_next_window() {
        let limit = limit("10/1s", Algorithm::SlidingCounter);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 5_300_000, 10);
        let ruling = model.decide(&limit, 5_300_000, 4);
        assert_eq!(ruling.retry_after_us, 1_100_000, "at 6.4 s the 10 weigh 6");
        assert_eq!(ruling.usage.reset_after_us, 1_700_000);
    }

    #[test]
    fn refunds_go_to_their_window_and_credits_to_the_older() {
        let limit = limit("10/1s", Algorithm::SlidingCounter);
        let mut model = LimitModel::new(limit);
        let old = model.charge(&limit, 5_900_000, 6);
        let young = model.charge(&limit, 6_100_000, 3);
        assert_eq!(LimitModel::expires_us(&old), 7_000_000);
        // At 6.5 s the old 6 weigh 3.
        assert_eq!(model.usage(&limit, 6_500_000).used, 6);
        let mut credited = model.clone();
        assert_eq!(credited.credit(&limit, 6_500_000, 4), 4, "all the old and one of the young");
        assert_eq!(credited.refund(6_500_000, &old, 6), 0);
        assert_eq!(credited.refund(6_500_000, &young, 6), 2);
        assert_eq!(model.clone().credit(&limit, 6_500_000, 99), 6);
        assert_eq!(model.refund(6_500_000, &old, 1), 1, "a raw unit, of which half counted");
        assert_eq!(model.usage(&limit, 6_500_000).used, 6, "5.5, rounded up");
        assert_eq!(model.refund(7_000_000, &old, 1), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_stands_at_the_start_of_the_window() {
        let limit = limit("10/1s", Algorithm::SlidingCounter);
        let mut model = LimitModel::new(limit);
        model.charge(&limit, 5_900_000, 6);
        let newest = model.charge(&limit, 6_100_000, 3);
        model.refund(6_100_000, &newest, 3);
        assert_eq!(model.usage(&limit, 2_000_000).used, 6, "the window is kept although refunded");
        assert_eq!(model.decide(&limit, 2_000_000, 5).retry_after_us, 4_166_667);
        assert_eq!(model.charge(&limit, 2_000_000, 1).at, 6);
    }
}
