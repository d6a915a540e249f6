//! `sliding-log`: every admitted request's time and cost.
//!
//! Also written in `slidegate-redis/scripts/sliding-log.lua`, `fast-sliding-log.lua` (Redis) and
//! `testing/model/sliding_log.rs` (the model): change all four.
//!
//! A cost passes when it fits beside everything that was admitted in `(now - W, now]`.
//!
//! ```text
//!     now - W                                        now
//!   x  |  x      x x          x                x      |
//!   gone  <------------ these count, to the microsecond
//! ```
//!
//! **Bound.** Exact: L in any window, and a refusal means that the window is truly full. The wait is
//! the time until enough of the *oldest* entries have left for the cost asked, no more.
//!
//! **State.** While every cost is 1, the stamps alone: a few in place, in 4 bytes each where the window is
//! below 71 minutes, more of them on the heap in 8 bytes per live request. With costs, a stamp and the running
//! total (a prefix sum): 16 bytes. Binary search in the totals finds both the units in use and the entry that must
//! leave to make room, so a decision is O(log n) for any cost. Requests of one microsecond share an entry once there
//! are costs. Rejected: one entry per unit of cost (10,000 writes for a cost of 10,000), and a plain cost per entry
//! (a wait would need a scan).
//!
//! **Weakness.** Large limits: memory grows with what is admitted. `compact-log` keeps the promise in bounded memory.

use super::log_entries::Entries;
use super::window::{Ruling, Usage, Window};
use crate::receipt::{ChargePlace, Position};
use crate::rule::Limit;

/// Places of a narrow slot, 40 bytes: for tables whose keys are seen once or a few times.
const PLACES_FEW: usize = 5;
/// Places of a wide slot, 64 bytes: one cache line.
const PLACES_MANY: usize = 11;

/// State of a `sliding-log` limit.
pub type SlidingLog = Log<PLACES_MANY>;
/// State of a `sliding-log` limit in a narrow slot.
pub(crate) type NarrowLog = Log<PLACES_FEW>;

/// State of a `sliding-log` limit, up to `PLACES` requests of it in place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log<const PLACES: usize> {
    /// Its newest stamp tells when the state ends without a heap access. Time does not run backwards past it.
    pub(super) entries: Entries<PLACES>,
}

impl<const PLACES: usize> Log<PLACES> {
    /// The same log with another number of places.
    pub(crate) fn refitted<const TO: usize>(self) -> Log<TO> {
        Log { entries: self.entries.refitted() }
    }

    /// Whether the log fits in place in a wide slot but not in a narrow one.
    pub(crate) fn wants_wide_slot(&self) -> bool {
        !self.entries.fits(PLACES_FEW) && self.entries.fits(PLACES_MANY)
    }

    /// The first live entry.
    #[inline]
    fn live_from(&self, limit: &Limit, now_us: u64) -> usize {
        let now_us = self.entries.newest().max(now_us);
        // Every charge drops expired entries, so few have expired since.
        now_us.checked_sub(limit.window_us()).map_or(0, |gone| self.entries.first_after(gone))
    }

    /// Drops the entries before `live` and adds the new charge.
    #[inline]
    fn push(&mut self, live: usize, now_us: u64, cost: u64) -> Position {
        let stamp = self.entries.newest().max(now_us);
        self.entries.drop_front(live);
        self.entries.push(stamp, cost);
        Position::At(stamp)
    }

    #[inline]
    fn ruling_from(&self, live: usize, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let usage = self.usage_from(live, limit, now_us);
        let room = limit.units() - cost;
        let retry_after_us = match usage.used.checked_sub(room) {
            None | Some(0) => 0,
            Some(missing) => self.leaves_us(live, missing) + limit.window_us() - now_us,
        };
        Ruling { usage, retry_after_us }
    }

    /// The stamp of the entry with which `missing` units, counted from entry `live`, have left.
    #[inline(never)]
    fn leaves_us(&self, live: usize, missing: u64) -> u64 {
        self.entries.stamp(self.entries.entry_reaching(live, missing))
    }

    #[inline]
    fn usage_from(&self, live: usize, limit: &Limit, now_us: u64) -> Usage {
        let used = self.entries.units(live, self.entries.len());
        let reset_after_us = if used == 0 { 0 } else { self.entries.newest() + limit.window_us() - now_us };
        Usage { used, reset_after_us }
    }
}

impl<const PLACES: usize> Window for Log<PLACES> {
    #[inline]
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        self.ruling_from(self.live_from(limit, now_us), limit, now_us, cost)
    }

    #[inline]
    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        self.usage_from(self.live_from(limit, now_us), limit, now_us)
    }

    #[inline]
    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        let live = self.live_from(limit, now_us);
        self.push(live, now_us, cost)
    }

    /// Searches for the first live entry once.
    #[expect(clippy::inline_always, reason = "called from one place, on the path of a single charge")]
    #[inline(always)]
    fn admit(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Result<(Position, Usage), Ruling> {
        let live = self.live_from(limit, now_us);
        let ruling = self.ruling_from(live, limit, now_us, cost);
        if !ruling.allowed() {
            return Err(ruling);
        }
        let position = self.push(live, now_us, cost);
        let reset_after_us = self.entries.newest() + limit.window_us() - now_us;
        Ok((position, Usage { used: ruling.usage.used + cost, reset_after_us }))
    }

    /// One unit, without moving the log.
    #[inline]
    fn admit_fast(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Option<(Position, Usage)> {
        if cost != 1 {
            return None;
        }
        let window_us = limit.window_us();
        let used = self.entries.push_fast(now_us, window_us, limit.units())?;
        Some((Position::At(now_us), Usage { used, reset_after_us: window_us }))
    }

    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        let Some(stamp) = place.position.at() else { return 0 };
        let after = self.entries.first_after(stamp);
        let from = stamp.checked_sub(1).map_or(0, |earlier| self.entries.first_after(earlier));
        if from < self.live_from(limit, now_us) {
            return 0;
        }
        let given = self.entries.units(from, after).min(units);
        self.entries.lower(from, given);
        given
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let live = self.live_from(limit, now_us);
        let given = self.entries.units(live, self.entries.len()).min(units);
        self.entries.lower(live, given);
        given
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        position.at().map_or(0, |stamp| stamp + limit.window_us())
    }

    fn ends_us(&self, limit: &Limit) -> u64 {
        if self.entries.newest() == 0 { 0 } else { self.entries.newest() + limit.window_us() }
    }

    fn charged_by_us(&self, _limit: &Limit) -> u64 {
        self.entries.newest()
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes()
    }

    #[inline]
    fn growth_bytes_max(&self, limit: &Limit, now_us: u64, cost: u64) -> usize {
        self.entries.growth_bytes_max(now_us, limit.window_us(), limit.units(), cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Algorithm;

    #[test]
    fn a_slot_fits_a_cache_line() {
        let fingerprint = size_of::<u64>();
        assert_eq!(fingerprint + size_of::<NarrowLog>(), 40);
        assert_eq!(fingerprint + size_of::<SlidingLog>(), 64);
    }

    #[test]
    fn the_wait_is_for_the_cost_and_from_the_oldest() {
        let limit = Limit::of("100/10s", Algorithm::SlidingLog);
        let mut state = SlidingLog::default();
        for (now_us, cost) in [(1, 10), (2, 30), (3, 60)] {
            state.charge(&limit, now_us, cost);
        }
        for (cost, leaves) in [(1, 1), (10, 1), (11, 2), (40, 2), (41, 3), (100, 3)] {
            assert_eq!(state.decide(&limit, 5, cost).retry_after_us, leaves + 10_000_000 - 5, "{cost}");
        }
    }

    #[test]
    fn a_live_request_of_cost_1_takes_8_bytes_and_a_past_burst_is_given_back() {
        let limit = Limit::of("100000/10s", Algorithm::SlidingLog);
        let mut state = SlidingLog::default();
        for now_us in 0..10_000 {
            state.charge(&limit, now_us, 1);
        }
        assert!(state.heap_bytes() <= 10_000 * 8 * 5 / 4, "{}", state.heap_bytes());
        for burst in 1..40 {
            state.charge(&limit, burst * 20_000_000, 1);
        }
        assert!(state.heap_bytes() < 1_000, "{}", state.heap_bytes());
    }
}
