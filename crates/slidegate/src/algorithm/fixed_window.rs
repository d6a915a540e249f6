//! `fixed-window`: one counter per clock-aligned window.
//!
//! Also written in `slidegate-redis/scripts/fixed-window.lua`, `fast-fixed-window.lua` (Redis) and
//! `testing/model/fixed_window.rs` (the model): change all four.
//!
//! Time is cut into windows of W that start at multiples of W since 1970; a window admits at most L.
//!
//! ```text
//!        window 7          window 8
//!   |.............LLLLL|LLLLL.............|
//!                 <-------->  2L within less than W
//! ```
//!
//! **Bound.** A trailing window meets at most two grid windows, each of which admits at most L: 2L.
//! L at the last instant of one and L at the first of the next attains it. It never refuses early: at
//! a refusal the grid window, which lies inside the trailing one, is full.
//!
//! **State.** A window number and a count: 16 bytes, whatever the limit.
//!
//! **Weakness:** bursts on both sides of a boundary. It exists for migration and comparison.

use super::window::{Ruling, Usage, Window};
use crate::receipt::{ChargePlace, Position};
use crate::rule::Limit;

/// State of a `fixed-window` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FixedWindow {
    pub(super) number: u64,
    pub(super) count: u64,
}

impl FixedWindow {
    /// The state as of `now_us`: a window that is over counts nothing, one that has not begun stays.
    #[inline]
    fn rolled(&self, limit: &Limit, now_us: u64) -> Self {
        let number = now_us / limit.window_us();
        if number > self.number { Self { number, count: 0 } } else { self.clone() }
    }
}

impl Window for FixedWindow {
    #[inline]
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let Self { number, count } = self.rolled(limit, now_us);
        let passes = count + cost <= limit.units();
        let retry_after_us = if passes { 0 } else { end_us(limit, number) - now_us };
        Ruling { usage: self.usage(limit, now_us), retry_after_us }
    }

    #[inline]
    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let Self { number, count } = self.rolled(limit, now_us);
        Usage { used: count, reset_after_us: if count == 0 { 0 } else { end_us(limit, number) - now_us } }
    }

    #[inline]
    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        *self = self.rolled(limit, now_us);
        self.count += cost;
        Position::At(self.number)
    }

    /// In the window of the last charge.
    #[inline]
    fn admit_fast(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Option<(Position, Usage)> {
        let window_us = limit.window_us();
        // Before the window it wraps to a large number.
        let elapsed_us = now_us.wrapping_sub(self.number * window_us);
        let used = self.count + cost;
        if elapsed_us >= window_us || used > limit.units() {
            return None;
        }
        self.count = used;
        Some((Position::At(self.number), Usage { used, reset_after_us: window_us - elapsed_us }))
    }

    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        if Some(self.rolled(limit, now_us).number) == place.position.at() {
            self.credit(limit, now_us, units)
        } else {
            0
        }
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let mut state = self.rolled(limit, now_us);
        let given = units.min(state.count);
        if given > 0 {
            state.count -= given;
            *self = state;
        }
        given
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        position.at().map_or(0, |number| end_us(limit, number))
    }

    fn ends_us(&self, limit: &Limit) -> u64 {
        end_us(limit, self.number)
    }

    fn charged_by_us(&self, limit: &Limit) -> u64 {
        end_us(limit, self.number) - 1
    }
}

/// The first instant after a window.
fn end_us(limit: &Limit, number: u64) -> u64 {
    (number + 1) * limit.window_us()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Algorithm;

    #[test]
    fn a_window_counts_until_its_end() {
        let limit = Limit::of("5/10s", Algorithm::FixedWindow);
        let mut state = FixedWindow::default();
        state.charge(&limit, 19_000_000, 5);
        let ruling = state.decide(&limit, 19_000_001, 1);
        assert_eq!((ruling.usage.used, ruling.retry_after_us), (5, 999_999));
        assert!(
            state.decide(&limit, 20_000_000, 5).allowed(),
            "a new window begins at its first microsecond"
        );
        assert_eq!(state.usage(&limit, 20_000_000), Usage::default());
    }

    #[test]
    fn a_charge_of_an_earlier_window_gives_nothing_back() {
        let limit = Limit::of("5/10s", Algorithm::FixedWindow);
        let mut state = FixedWindow::default();
        let places = [19_000_000, 20_000_000].map(|now_us| {
            let position = state.charge(&limit, now_us, 2);
            ChargePlace { limit, order: 0, position }
        });
        assert_eq!(places.map(|place| state.refund(&limit, 20_000_001, &place, 2)), [0, 2]);
    }
}
