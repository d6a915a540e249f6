//! `gcra`: the token bucket as one timestamp.
//!
//! Also written in `slidegate-redis/scripts/gcra.lua`, `fast-gcra.lua` (Redis) and `testing/model/gcra.rs` (the model):
//! change all four.
//!
//! Every unit occupies `T = W / L` of a line that drains in real time; the theoretical arrival time (TAT)
//! is where the occupied part ends. A cost passes when that part, with it, is at most W long.
//!
//! ```text
//!              now        TAT          now + W
//!   -----------|===========|---- free ----|------>  time
//!               backlog, drains as now moves right
//! ```
//!
//! **Exactness.** T is a fraction for most rates (3 per second: 333,333 1/3 us), and rounding it lets
//! the rate drift. The backlog is therefore counted in unit-microseconds, in which one unit is exactly
//! W and one microsecond drains exactly L.
//!
//! **Bound.** L at once, plus what drains: at most `L (1 + d/W)` over any span d, so up to 2L-1 in a
//! half-open window. It never refuses early.
//!
//! **State.** The backlog at the last charge, that instant, how fast it drains, and what was given back.
//! After a change of the limit the backlog in unit-microseconds, and with it `used`, stays what it was.
//! Rejected: TAT alone, as instant and fraction. It is smaller, but a lowered limit stretches it beyond
//! the end of time, and a clock that is set back makes it look longer than it is.
//!
//! **Refunds.** A charge occupies the stretch at the end of the line; the part that has not drained
//! can be given back. Taking out one stretch moves the later ones towards the present. The state counts
//! the units taken out; otherwise a later refund would give back units that have drained.
//!
//! **Weakness.** Hard caps: an upstream that allows L in any window sees nearly twice that. It exists for
//! migration and for `CL.THROTTLE`.

use super::packed_line::{Line, PackedLine};
use super::wide::{narrow, product};
use super::window::{Ruling, Usage, Window};
use crate::receipt::{Backlog, ChargePlace, Position};
use crate::rule::Limit;

/// State of a `gcra` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gcra(PackedLine);

impl Gcra {
    pub(super) fn new(line: &Line) -> Self {
        Self(PackedLine::new(line))
    }

    pub(super) fn line(&self) -> Line {
        self.0.get()
    }

    /// The same backlog, draining at the rate of the new limit.
    pub(crate) fn rescaled(&self, limit: &Limit, now_us: u64) -> Self {
        let mut line = self.line();
        line.set_backlog(limit, now_us, line.backlog_at(now_us));
        Self::new(&line)
    }

    /// A new line with the backlog of `from_us`, at `to_us`. A charge of the used units would round it up, and could end
    /// later than this line.
    pub(crate) fn set_back(&self, from_us: u64, to_us: u64) -> Self {
        let line = self.line();
        let backlog = Backlog::new(line.backlog_at(from_us));
        let mut moved = Line { backlog, as_of_us: to_us, charges_end_us: 0, given_back: 0, ..line };
        moved.charges_end_us = moved.drained_us();
        Self::new(&moved)
    }

    /// Changes the line.
    fn update<T>(&mut self, change: impl FnOnce(&mut Line) -> T) -> T {
        let mut line = self.line();
        let result = change(&mut line);
        *self = Self::new(&line);
        result
    }
}

impl Line {
    /// Occupied length at `now_us`, in unit-microseconds.
    fn backlog_at(&self, now_us: u64) -> u128 {
        let drained = product(self.drained_per_window, now_us.saturating_sub(self.as_of_us));
        self.backlog.get().saturating_sub(drained)
    }

    fn set_backlog(&mut self, limit: &Limit, now_us: u64, backlog: u128) {
        if self.drained_per_window != limit.units() {
            // Stretches of earlier charges drain at an unknown rate now: none can be refunded.
            self.given_back = self.given_back.saturating_add(self.usage(limit, now_us).used);
            self.drained_per_window = limit.units();
        }
        self.backlog = Backlog::new(backlog);
        self.as_of_us = self.as_of_us.max(now_us);
    }

    /// When the line is empty; 0 if it is empty already.
    fn drained_us(&self) -> u64 {
        if self.backlog == Backlog::default() {
            return 0;
        }
        let drains_in_us = self.backlog.get().div_ceil(self.drained_per_window.max(1).into());
        self.as_of_us.saturating_add(narrow(drains_in_us))
    }

    /// Microseconds from `now_us` until the backlog has drained to `target`.
    fn drains_to_us(&self, now_us: u64, target: u128) -> u64 {
        match self.backlog_at(now_us).checked_sub(target) {
            None | Some(0) => 0,
            Some(excess) => {
                let begins_us = self.as_of_us.saturating_sub(now_us);
                begins_us.saturating_add(narrow(excess.div_ceil(self.drained_per_window.into())))
            }
        }
    }

    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let room = product(limit.units() - cost, limit.window_us());
        Ruling { usage: self.usage(limit, now_us), retry_after_us: self.drains_to_us(now_us, room) }
    }

    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        Usage {
            used: narrow(self.backlog_at(now_us).div_ceil(limit.window_us().into())),
            reset_after_us: self.drains_to_us(now_us, 0),
        }
    }

    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        let backlog = self.backlog_at(now_us) + product(cost, limit.window_us());
        self.set_backlog(limit, now_us, backlog);
        self.charges_end_us = self.charges_end_us.max(self.drained_us());
        Position::Line { charged_us: self.as_of_us, backlog: self.backlog, given_back: self.given_back }
    }

    /// Gives back the whole units of the charge that have not drained yet. It assumes that all units given back
    /// since the charge moved its stretch towards the present.
    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        let Position::Line { charged_us, backlog, given_back } = place.position else { return 0 };
        if self.drained_per_window != place.limit.units() {
            return 0;
        }
        let window_us = limit.window_us();
        // After a power failure a store may have lost charges whose receipts still exist.
        let elapsed_us = now_us.max(self.as_of_us).saturating_sub(charged_us);
        let undrained = backlog
            .get()
            .saturating_sub(product(self.drained_per_window, elapsed_us))
            .saturating_sub(product(self.given_back.saturating_sub(given_back), window_us))
            .min(self.backlog_at(now_us));
        let whole = narrow(undrained / u128::from(window_us));
        self.credit(&place.limit, now_us, units.min(whole))
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let used_before = self.usage(limit, now_us).used;
        let backlog = self.backlog_at(now_us);
        let given = product(units, limit.window_us()).min(backlog);
        if given == 0 {
            return 0;
        }
        self.set_backlog(limit, now_us, backlog - given);
        let given_units = narrow(given.div_ceil(limit.window_us().into()));
        self.given_back = self.given_back.saturating_add(given_units);
        used_before - self.usage(limit, now_us).used
    }
}

impl Window for Gcra {
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        self.line().decide(limit, now_us, cost)
    }

    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        self.line().usage(limit, now_us)
    }

    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        self.update(|line| line.charge(limit, now_us, cost))
    }

    /// In 64 bits, which hold the lines of nearly all rules.
    #[inline]
    fn admit_fast(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Option<(Position, Usage)> {
        let (units, window_us) = (limit.units(), limit.window_us());
        let line = self.0.in_place()?;
        let elapsed_us = now_us.checked_sub(line.as_of_us())?;
        let line_max = units.checked_mul(window_us)?;
        // It does not overflow, as a cost is at most the limit.
        let backlog =
            line.backlog.saturating_sub(units.saturating_mul(elapsed_us)).checked_add(cost * window_us)?;
        if line.drained_per_window() != units || backlog > line_max {
            return None;
        }
        let (used, reset_after_us) = (backlog.div_ceil(window_us), backlog.div_ceil(units));
        line.set_as_of_us(now_us);
        line.backlog = backlog;
        line.charges_end_us = line.charges_end_us.max(now_us + reset_after_us);
        let (backlog, given_back) = (Backlog::new(backlog.into()), line.given_back());
        let position = Position::Line { charged_us: now_us, backlog, given_back };
        Some((position, Usage { used, reset_after_us }))
    }

    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        self.update(|line| line.refund(limit, now_us, place, units))
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        self.update(|line| line.credit(limit, now_us, units))
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        match position {
            Position::At(_) => 0,
            Position::Line { charged_us, backlog, .. } => {
                charged_us.saturating_add(narrow(backlog.get().div_ceil(limit.units().into())))
            }
        }
    }

    fn ends_us(&self, _limit: &Limit) -> u64 {
        let line = self.line();
        line.charges_end_us.max(line.drained_us())
    }

    fn charged_by_us(&self, _limit: &Limit) -> u64 {
        self.line().as_of_us
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    #[inline]
    fn growth_bytes_max(&self, limit: &Limit, _now_us: u64, _cost: u64) -> usize {
        self.0.growth_bytes_max(limit.units(), limit.window_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Algorithm;

    #[test]
    fn a_third_of_a_second_is_not_rounded() {
        let limit = Limit::of("3/1s", Algorithm::Gcra);
        let mut state = Gcra::default();
        state.charge(&limit, 0, 3);
        assert_eq!(state.decide(&limit, 0, 1).retry_after_us, 333_334);
        assert_eq!(state.decide(&limit, 0, 2).retry_after_us, 666_667);
        assert_eq!(state.decide(&limit, 0, 3).retry_after_us, 1_000_000);
        state.charge(&limit, 333_334, 1);
        assert_eq!(
            state.line().backlog.get(),
            3_000_000 - 333_334 * 3 + 1_000_000,
            "a third of a microsecond is kept"
        );
    }

    /// A limit that was low for a while must not keep the key alive longer than its line.
    #[test]
    fn a_limit_that_was_lowered_and_raised_again_leaves_no_late_end() {
        let (high, low) = (Limit::of("1000000/1s", Algorithm::Gcra), Limit::of("1/1s", Algorithm::Gcra));
        let mut state = Gcra::default();
        state.charge(&high, 0, 1_000_000);
        let lowered = state.rescaled(&low, 0);
        assert_eq!(lowered.ends_us(&low), 1_000_000 * 1_000_000);
        assert_eq!(lowered.rescaled(&high, 0).ends_us(&high), 1_000_000);
    }

    #[test]
    fn another_limit_keeps_what_is_used() {
        let (slow, fast) = (Limit::of("10/10s", Algorithm::Gcra), Limit::of("20/10s", Algorithm::Gcra));
        let mut state = Gcra::default();
        state.charge(&slow, 0, 8);
        let state = state.rescaled(&fast, 2_000_000);
        assert_eq!(state.usage(&fast, 2_000_000), Usage { used: 6, reset_after_us: 3_000_000 });
    }
}
