//! `sliding-counter`: two adjacent fixed windows, the older weighted by its overlap.
//!
//! Also written in `slidegate-redis/scripts/sliding-counter.lua`, `fast-sliding-counter.lua` (Redis) and
//! `testing/model/sliding_counter.rs` (the model): change all four.
//!
//! With e microseconds of the current window elapsed, the trailing window is estimated as
//! `previous x (W - e) / W + current`, as if the previous window's requests had been spread evenly.
//!
//! ```text
//!        previous = 70          current = 40
//!   |........................|.................|
//!             <--- W - e ---> <------ e ------>
//!             <------ the trailing window ---->      70 x 0.375 + 40 = 66.25
//! ```
//!
//! A cost passes when the estimate plus the cost is at most the limit. Both sides are multiplied by W
//! and compared as integers, so nothing is rounded.
//!
//! **Bound.** With p in the previous window the trailing window truly holds at most `L + p e / W`,
//! hence up to 2L-1: L in the last instant of a window, then what the fading weight releases. Over any
//! span d <= W at most `L (1 + d/W)`. It may refuse although the true window is empty: L at the start
//! of a window still weighs nearly L a window later, so a client that bursts once per window gets
//! between half and all of its limit, depending on the phase.
//!
//! **State.** A window number and two counts in 16 bytes; 24 more on the heap for counts above 2^39, which
//! only limits of hundreds of thousands of millions reach.
//!
//! **Weakness:** adversaries and bursts. It is the cheapest algorithm.

use super::packed_counts::{COUNT_BITS, Counts, PackedCounts};
use super::wide::{narrow, product, quotient, share_rounded_up};
use super::window::{Ruling, Usage, Window};
use crate::receipt::{ChargePlace, Position};
use crate::rule::Limit;

/// State of a `sliding-counter` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlidingCounter {
    pub(super) counts: PackedCounts,
}

impl Counts {
    /// The counts as of `now_us`, and how much of their previous window the trailing window overlaps.
    #[inline]
    fn rolled(self, limit: &Limit, now_us: u64) -> (Self, u64) {
        let window_us = limit.window_us();
        let number = (now_us / window_us).max(self.number);
        let rolled = match number - self.number {
            0 => self,
            1 => Self { number, previous: self.current, current: 0 },
            _ => Self { number, previous: 0, current: 0 },
        };
        let elapsed_us = now_us.saturating_sub(number * window_us);
        (rolled, window_us - elapsed_us)
    }

    /// What is in use. Expects rolled counts.
    #[expect(clippy::inline_always, reason = "passed through memory, it takes longer than the decision")]
    #[inline(always)]
    fn usage(self, limit: &Limit, overlap_us: u64, now_us: u64) -> Usage {
        let Self { number, previous, current } = self;
        let window_us = limit.window_us();
        let windows_left = if current > 0 { 2 } else { u64::from(previous > 0) };
        Usage {
            used: current + share_rounded_up(previous, overlap_us, window_us),
            reset_after_us: if windows_left == 0 { 0 } else { (number + windows_left) * window_us - now_us },
        }
    }

    /// The instant at which `cost` passes, `None` if it passes now. Expects rolled counts.
    #[inline]
    fn passes_us(&self, limit: &Limit, overlap_us: u64, cost: u64) -> Option<u64> {
        let window_us = limit.window_us();
        let start_us = self.number * window_us;
        if let Some(room) = limit.units().checked_sub(self.current + cost) {
            if product(self.previous, overlap_us) <= product(room, window_us) {
                return None;
            }
            // The largest overlap at which the previous window leaves enough room.
            return Some(start_us + window_us - quotient(room, window_us, self.previous));
        }
        // This window alone is too full: it has to become the previous one and fade.
        let room = limit.units() - cost;
        Some(start_us + 2 * window_us - quotient(room, window_us, self.current))
    }
}

impl Window for SlidingCounter {
    #[inline]
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let (counts, overlap_us) = self.counts.get().rolled(limit, now_us);
        let retry_after_us = counts.passes_us(limit, overlap_us, cost).map_or(0, |instant| instant - now_us);
        Ruling { usage: counts.usage(limit, overlap_us, now_us), retry_after_us }
    }

    #[inline]
    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let (counts, overlap_us) = self.counts.get().rolled(limit, now_us);
        counts.usage(limit, overlap_us, now_us)
    }

    #[inline]
    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        let (mut counts, _) = self.counts.get().rolled(limit, now_us);
        counts.current += cost;
        self.counts.set(counts);
        Position::At(counts.number)
    }

    /// Unpacks the counts once.
    #[expect(clippy::inline_always, reason = "called from one place, on the path of a single charge")]
    #[inline(always)]
    fn admit(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Result<(Position, Usage), Ruling> {
        let before = self.counts.get();
        let (mut counts, overlap_us) = before.rolled(limit, now_us);
        if let Some(passes_us) = counts.passes_us(limit, overlap_us, cost) {
            let usage = counts.usage(limit, overlap_us, now_us);
            return Err(Ruling { usage, retry_after_us: passes_us - now_us });
        }
        counts.current += cost;
        // Usually the window is the same as before, and only one word changes.
        if counts.number != before.number || !self.counts.add(cost) {
            self.counts.set(counts);
        }
        Ok((Position::At(counts.number), counts.usage(limit, overlap_us, now_us)))
    }

    /// In the window of the last charge.
    #[inline]
    fn admit_fast(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Option<(Position, Usage)> {
        let window_us = limit.window_us();
        let Counts { number, previous, current } = self.counts.in_place()?;
        // Before the window it wraps to a large number.
        let elapsed_us = now_us.wrapping_sub(number * window_us);
        if elapsed_us >= window_us {
            return None;
        }
        let overlap_us = window_us - elapsed_us;
        let used = current + cost + share_rounded_up(previous, overlap_us, window_us);
        if used > limit.units() || !self.counts.add(cost) {
            return None;
        }
        Some((Position::At(number), Usage { used, reset_after_us: overlap_us + window_us }))
    }

    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        let Some(number) = place.position.at() else { return 0 };
        let mut counts = self.counts.get();
        let (rolled, _) = counts.rolled(limit, now_us);
        // Only a charge rolls the stored counts, so the charge's window is looked up in the counts as stored.
        let count = match (rolled.number.checked_sub(number), counts.number.checked_sub(number)) {
            (Some(0 | 1), Some(0)) => &mut counts.current,
            (Some(0 | 1), Some(1)) => &mut counts.previous,
            _ => return 0,
        };
        let given = units.min(*count);
        *count -= given;
        self.counts.set(counts);
        given
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let used_before = self.usage(limit, now_us).used;
        if used_before == 0 {
            return 0;
        }
        let mut counts = self.counts.get();
        let (rolled, overlap_us) = counts.rolled(limit, now_us);
        let window_us = limit.window_us();
        // The previous window counts by its overlap only, so one unit of use is more than one of its units.
        let from_previous = quotient(units.min(used_before), window_us, overlap_us).min(rolled.previous);
        let rest = product(units, window_us) - product(from_previous, overlap_us);
        let from_current = narrow(rest / u128::from(window_us)).min(rolled.current);
        if rolled.number == counts.number {
            counts.previous -= from_previous;
            counts.current -= from_current;
        } else {
            counts.current -= from_previous;
        }
        self.counts.set(counts);
        used_before - self.usage(limit, now_us).used
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        position.at().map_or(0, |number| (number + 2) * limit.window_us())
    }

    fn ends_us(&self, limit: &Limit) -> u64 {
        (self.counts.get().number + 2) * limit.window_us()
    }

    fn charged_by_us(&self, limit: &Limit) -> u64 {
        (self.counts.get().number + 1) * limit.window_us() - 1
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.counts.heap_bytes()
    }

    #[inline]
    fn growth_bytes_max(&self, limit: &Limit, _now_us: u64, _cost: u64) -> usize {
        // What passes is at most the limit.
        if limit.units() >> COUNT_BITS == 0 { 0 } else { size_of::<Counts>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Algorithm;

    #[test]
    fn a_wait_may_end_in_this_window_or_in_the_next() {
        let limit = Limit::of("10/10s", Algorithm::SlidingCounter);
        let state =
            SlidingCounter { counts: PackedCounts::of(Counts { number: 1, previous: 10, current: 4 }) };
        // Room for 2 beside 4 leaves 4 for the fading 10: 6 s into the window.
        assert_eq!(state.decide(&limit, 10_000_000, 2).retry_after_us, 6_000_000);
        // 7 beside 4 never fit: the 4 must become the previous window and fade to 3.
        assert_eq!(state.decide(&limit, 10_000_000, 7).retry_after_us, 12_500_000);
    }
}
