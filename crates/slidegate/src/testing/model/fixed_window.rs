//! Model of `fixed-window`: all charges of the clock-aligned window are in use.
//!
//! Judges `algorithm/fixed_window.rs` and, in `slidegate-redis/scripts`, `fixed-window.lua` and
//! `fast-fixed-window.lua`: change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::charge_sums::ChargeSums;
use super::limit_model::ModelPlace;
use crate::rule::Limit;

/// The units of every clock-aligned window.
#[derive(Debug, Clone, Default)]
pub(super) struct FixedWindow {
    windows: ChargeSums,
}

/// The window of an instant.
fn number(limit: &Limit, at_us: u128) -> u128 {
    at_us / u128::from(limit.window_us())
}

impl AlgorithmModel for FixedWindow {
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
        Amount::of_units(self.windows.at(number(limit, at_us)))
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        self.windows.add(number(limit, at_us), cost);
        number(limit, at_us)
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        if place.at == number(limit, at_us) { self.windows.take(place.at, units) } else { 0 }
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        self.windows.take(number(limit, at_us), units);
    }

    fn change(&mut self, _limit: &Limit, _at_us: u128) {}
}

/// The instant from which the charge at `place` no longer counts.
pub(super) fn expires_us(place: &ModelPlace) -> u128 {
    (place.at + 1) * u128::from(place.limit.window_us())
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::LimitModel;
    use super::super::samples::{SECOND_US, limit};
    use crate::algorithm::Usage;
    use crate::rule::Algorithm;

    #[test]
    fn a_window_ends_by_the_clock() {
        let limit = limit("5/1m", Algorithm::FixedWindow);
        let mut model = LimitModel::new(limit);
        let place = model.charge(&limit, 118 * SECOND_US, 5);
        assert_eq!((place.at, LimitModel::expires_us(&place)), (1, 120 * SECOND_US));
        let ruling = model.decide(&limit, 118 * SECOND_US, 1);
        assert_eq!(ruling.usage, Usage { used: 5, reset_after_us: 2 * SECOND_US });
        assert_eq!(ruling.retry_after_us, 2 * SECOND_US);
        assert!(model.decide(&limit, 120 * SECOND_US, 5).allowed());
        assert_eq!(model.refund(120 * SECOND_US, &place, 5), 0);
        assert_eq!(model.refund(120 * SECOND_US - 1, &place, 2), 2);
        assert_eq!(model.credit(&limit, 119 * SECOND_US, 9), 3);
        assert_eq!(model.credit(&limit, 119 * SECOND_US, 9), 0);
    }

    #[test]
    fn a_clock_that_is_set_back_stays_in_the_newest_window() {
        let limit = limit("5/1m", Algorithm::FixedWindow);
        let mut model = LimitModel::new(limit);
        let old = model.charge(&limit, 30 * SECOND_US, 5);
        let newest = model.charge(&limit, 70 * SECOND_US, 4);
        assert_eq!(model.decide(&limit, 50 * SECOND_US, 2).retry_after_us, 70 * SECOND_US);
        assert_eq!(model.refund(50 * SECOND_US, &old, 5), 0);
        assert_eq!(model.refund(50 * SECOND_US, &newest, 4), 4);
        assert_eq!(model.charge(&limit, 50 * SECOND_US, 1).at, 1, "kept although refunded");
    }

    #[test]
    fn another_limit_keeps_what_is_used() {
        let (loose, strict) = (limit("5/1m", Algorithm::FixedWindow), limit("3/1m", Algorithm::FixedWindow));
        let mut model = LimitModel::new(loose);
        model.charge(&loose, SECOND_US, 4);
        let model = model.changed(&strict, 2 * SECOND_US);
        assert_eq!(model.decide(&strict, 2 * SECOND_US, 1).usage.used, 4);
        assert_eq!(model.decide(&strict, 2 * SECOND_US, 1).retry_after_us, 58 * SECOND_US);
    }
}
