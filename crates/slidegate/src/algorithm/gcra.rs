//! `gcra`: the token bucket as one timestamp.
//!
//! Every unit occupies `T = W / L` of a line that drains in real time; the theoretical arrival time
//! (TAT) is where the occupied part ends. A cost passes when, with it, the occupied part is at most W
//! long.
//!
//! ```text
//!              now        TAT          now + W
//!   -----------|===========|---- free ----|------>  time
//!               backlog, drains as now moves right
//! ```
//!
//! **Exactness.** T is a fraction for most rates (3 per second: 333,333 1/3 us), and rounding it lets
//! the rate drift. The backlog is therefore counted in unit-microseconds, in which one unit is exactly
//! W and one microsecond drains exactly L. The state keeps TAT as whole microseconds and a fraction
//! with denominator L.
//!
//! **Bound.** L at once, plus what drains: at most `L (1 + d/W)` over any span d, so up to 2L-1 in a
//! half-open window. It never refuses early.
//!
//! **State.** One instant, its fraction, the limit that is the fraction's denominator, and what was given
//! back. After a change of the limit the backlog in unit-microseconds, and with it `used`, stays what it
//! was.
//!
//! **Refunds.** A charge occupies the stretch of the line before its arrival time, and what of it has not
//! drained can be given back. Taking out one stretch moves the later ones towards the present; without
//! counting what was taken out, a later refund would give back what has long drained.
//!
//! **Bad at** hard caps: an upstream that allows L in any window sees nearly twice that. It is here for
//! migration and for `CL.THROTTLE`.

use super::wide::{narrow, product};
use super::window::{Ruling, Usage, Window};
use crate::receipt::{Place, Position};
use crate::rule::Limit;

/// State of a `gcra` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gcra {
    /// End of the occupied part: whole microseconds, and a numerator over the units drained per window.
    arrival_us: u64,
    arrival_fraction: u64,
    /// Units that drain per window: the limit at the last change of the backlog, 0 before the first.
    drained_per_window: u64,
    /// Units that refunds and credits took out of the line so far, so that a receipt knows by how much
    /// its stretch may have moved. It starts at the first charge's time, so that receipts of a state that
    /// was forgotten do not fit its successor.
    given_back: u64,
}

impl Gcra {
    /// What is occupied at `now_us`, in unit-microseconds.
    fn backlog(&self, now_us: u64) -> u128 {
        occupied(self.arrival_us, self.arrival_fraction, self.drained_per_window, now_us)
    }

    /// The same backlog, draining as the new limit says.
    pub(super) fn rescaled(&self, limit: &Limit, now_us: u64) -> Self {
        let mut rescaled = self.clone();
        rescaled.set_backlog(limit, now_us, self.backlog(now_us));
        rescaled
    }

    fn set_backlog(&mut self, limit: &Limit, now_us: u64, backlog: u128) {
        let units = limit.units();
        if self.drained_per_window != units {
            // How fast the stretches of earlier charges drain is no longer known: none can be refunded.
            self.given_back += self.usage(limit, now_us).used;
            self.drained_per_window = units;
        }
        if backlog == 0 {
            // An arrival time of now would look occupied if the clock were set back.
            (self.arrival_us, self.arrival_fraction) = (0, 0);
            return;
        }
        // A line that is longer than time itself ends with it.
        let drains_us = narrow(backlog / u128::from(units));
        (self.arrival_us, self.arrival_fraction) = match now_us.checked_add(drains_us) {
            Some(arrival_us) => (arrival_us, narrow(backlog % u128::from(units))),
            None => (u64::MAX, 0),
        };
    }

    /// Microseconds until the backlog has drained to `target`.
    fn drains_to_us(&self, backlog: u128, target: u128) -> u64 {
        match backlog.checked_sub(target) {
            None | Some(0) => 0,
            Some(excess) => narrow(excess.div_ceil(u128::from(self.drained_per_window))),
        }
    }
}

impl Window for Gcra {
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let room = product(limit.units() - cost, limit.window_us());
        let retry_after_us = self.drains_to_us(self.backlog(now_us), room);
        Ruling { usage: self.usage(limit, now_us), retry_after_us }
    }

    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let backlog = self.backlog(now_us);
        Usage {
            used: narrow(backlog.div_ceil(u128::from(limit.window_us()))),
            reset_after_us: self.drains_to_us(backlog, 0),
        }
    }

    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        if self.drained_per_window == 0 {
            self.given_back = now_us;
        }
        let backlog = self.backlog(now_us) + product(cost, limit.window_us());
        self.set_backlog(limit, now_us, backlog);
        Position { at: self.arrival_us, fraction: self.arrival_fraction, given_back: self.given_back }
    }

    /// Gives back the whole units of the charge that have not drained yet. What was given back since
    /// may have moved its stretch towards the present, and is taken to have.
    fn refund(&mut self, limit: &Limit, now_us: u64, place: &Place, units: u64) -> u64 {
        let Position { at, fraction, given_back } = place.position;
        let drained = self.drained_per_window;
        let Some(moved) = self.given_back.checked_sub(given_back).filter(|_| drained == place.limit.units())
        else {
            return 0;
        };
        let window_us = limit.window_us();
        let undrained = occupied(at, fraction, drained, now_us).saturating_sub(product(moved, window_us));
        let whole = narrow(undrained.min(self.backlog(now_us)) / u128::from(window_us));
        self.credit(&place.limit, now_us, units.min(whole))
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let used_before = self.usage(limit, now_us).used;
        let given = product(units, limit.window_us()).min(self.backlog(now_us));
        if given == 0 {
            return 0;
        }
        self.set_backlog(limit, now_us, self.backlog(now_us) - given);
        self.given_back += narrow(given.div_ceil(u128::from(limit.window_us())));
        used_before - self.usage(limit, now_us).used
    }

    fn expires_us(_: &Limit, position: Position) -> u64 {
        position.at.saturating_add(u64::from(position.fraction > 0))
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// The part of the line from `now_us` to an arrival time, in unit-microseconds.
fn occupied(arrival_us: u64, fraction: u64, drained_per_window: u64, now_us: u64) -> u128 {
    match arrival_us.checked_sub(now_us) {
        Some(whole_us) => product(drained_per_window, whole_us) + u128::from(fraction),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Algorithm, Decimal};

    fn limit(rate: &str) -> Limit {
        Limit::new(rate.parse().unwrap(), Decimal::ZERO, Algorithm::Gcra)
    }

    #[test]
    fn a_third_of_a_second_is_not_rounded() {
        let limit = limit("3/1s");
        let mut state = Gcra::default();
        state.charge(&limit, 0, 3);
        assert_eq!(state.decide(&limit, 0, 1).retry_after_us, 333_334);
        assert_eq!(state.decide(&limit, 0, 2).retry_after_us, 666_667);
        assert_eq!(state.decide(&limit, 0, 3).retry_after_us, 1_000_000);
        state.charge(&limit, 333_334, 1);
        assert_eq!(
            (state.arrival_us, state.arrival_fraction),
            (1_333_333, 1),
            "a third of a microsecond is kept"
        );
    }

    #[test]
    fn another_limit_keeps_what_is_used() {
        let (slow, fast) = (limit("10/10s"), limit("20/10s"));
        let mut state = Gcra::default();
        state.charge(&slow, 0, 8);
        let state = state.rescaled(&fast, 2_000_000);
        assert_eq!(state.usage(&fast, 2_000_000), Usage { used: 6, reset_after_us: 3_000_000 });
    }
}
