//! `compact-log`: a log that merges neighbours once it holds more than K entries.
//!
//! Also written in `slidegate-redis/scripts/compact-log.lua`, `fast-compact-log.lua` (Redis) and
//! `testing/model/compact_log.rs` (the model): change all four.
//!
//! Entries are (stamp, units). When the log is full, one pass merges neighbours while their sum is at
//! most `g = ceil(2L / (K - 2))`; the merged entry bears the later stamp.
//!
//! ```text
//!   before   1 1 1 1 1 1 1 1 1 1 1 1 9 1 1        g = 4
//!   after          4       4       4 9   2        neighbouring pairs sum to more than g
//! ```
//!
//! **Never over.** A live unit is in an entry whose stamp is not earlier than its own, so that
//! entry is live: the log counts at least the live units.
//!
//! **Early by at most g - 1 units.** In any live entry but the oldest, every unit is later than the
//! oldest entry's stamp, which is live, so all of it truly counts. Of the oldest entry at least the last
//! unit is live; entries larger than g were never merged and are exact.
//!
//! **Room.** After a pass neighbours sum to more than g, so with S units in the log there are fewer
//! than `2S/g + 1` entries. S is at most L unless settlements went above it or the limit was lowered; g
//! is then taken from S, so that the log never exceeds K entries.
//!
//! **Exact until more than K requests are live**, and again when those that were merged then have left:
//! for every limit up to K, and for every key that is far below a great limit.
//!
//! **State.** 12 bytes per entry, at most K of them, whatever the limit. Rejected: exponential
//! histograms (13 times larger for the same error, because they promise a relative error that a limiter
//! has no use for), and merging by time (an error without a bound in units).
//!
//! **Weakness:** a refund of a merged charge is taken from the merged entry, and a late unit keeps the whole
//! entry alive.

use std::collections::VecDeque;

use super::compact_entry::Entry;
use super::window::{Ruling, Usage, Window};
use crate::receipt::{ChargePlace, Position};
use crate::rule::{Algorithm, Entries, Limit};

/// State of a `compact-log` limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactLog {
    pub(super) entries: VecDeque<Entry>,
    /// Units in all entries, those not yet dropped included.
    pub(super) sum: u64,
    /// Not earlier than any entry's stamp.
    pub(super) newest: u64,
    /// The newest stamp that a credit has lowered. Merged entries up to here cannot be refunded: the credit may have
    /// taken the receipt's units.
    pub(super) credited: u64,
}

impl CompactLog {
    fn stamp(&self, index: usize) -> u64 {
        self.entries[index].stamp(self.newest)
    }

    /// The first entry later than `stamp`.
    fn first_after(&self, stamp: u64) -> usize {
        self.entries.partition_point(|entry| entry.stamp(self.newest) <= stamp)
    }

    /// The first live entry, and the units before it.
    fn live_from(&self, limit: &Limit, now_us: u64) -> (usize, u64) {
        let gone = now_us.max(self.newest).checked_sub(limit.window_us());
        let live = gone.map_or(0, |gone| self.first_after(gone));
        (live, self.entries.range(..live).map(|entry| entry.units()).sum())
    }

    fn usage_from(&self, live: usize, gone_units: u64, limit: &Limit, now_us: u64) -> Usage {
        if live == self.entries.len() {
            return Usage::default();
        }
        let reset_us = self.stamp(self.entries.len() - 1) + limit.window_us();
        Usage { used: self.sum - gone_units, reset_after_us: reset_us - now_us }
    }

    /// The instant at which `missing` units will have left, counted from entry `live`.
    fn leaves_us(&self, limit: &Limit, live: usize, missing: u64) -> u64 {
        let mut left = 0;
        let index = self.entries.range(live..).position(|entry| {
            left += entry.units();
            left >= missing
        });
        let index = live + index.expect("a cost is at most the limit, so less than what is used is missing");
        self.stamp(index) + limit.window_us()
    }

    /// Merges neighbours while their sum is at most `group_max`.
    fn merge(&mut self, group_max: u64) {
        let mut kept = 0;
        for index in 1..self.entries.len() {
            let (group, entry) = (self.entries[kept], self.entries[index]);
            let units = group.units() + entry.units();
            if units <= group_max {
                self.entries[kept] = Entry::new(entry.stamp(self.newest), units, true);
            } else {
                kept += 1;
                self.entries[kept] = entry;
            }
        }
        self.entries.truncate(kept + 1);
    }

    /// Takes `units` from entry `index`, which holds at least that many.
    fn lower(&mut self, index: usize, units: u64) {
        let entry = self.entries[index];
        self.sum -= units;
        if entry.units() == units {
            self.entries.remove(index);
        } else {
            self.entries[index] = entry.with_units(self.newest, entry.units() - units);
        }
    }

    fn make_room(&mut self, entries_max: usize) {
        let len = self.entries.len();
        let capacity = self.entries.capacity();
        if capacity > entries_max.max(16) || (capacity > 16 && len < capacity / 4) {
            self.entries.shrink_to((len + len / 4 + 4).min(entries_max));
        }
        if len == self.entries.capacity() {
            self.entries.reserve_exact(growth(len, entries_max));
        }
    }
}

impl Window for CompactLog {
    fn decide(&self, limit: &Limit, now_us: u64, cost: u64) -> Ruling {
        let (live, gone_units) = self.live_from(limit, now_us);
        let usage = self.usage_from(live, gone_units, limit, now_us);
        let room = limit.units() - cost;
        let retry_after_us = match usage.used.checked_sub(room) {
            None | Some(0) => 0,
            Some(missing) => self.leaves_us(limit, live, missing) - now_us,
        };
        Ruling { usage, retry_after_us }
    }

    fn usage(&self, limit: &Limit, now_us: u64) -> Usage {
        let (live, gone_units) = self.live_from(limit, now_us);
        self.usage_from(live, gone_units, limit, now_us)
    }

    fn charge(&mut self, limit: &Limit, now_us: u64, cost: u64) -> Position {
        let (live, gone_units) = self.live_from(limit, now_us);
        drop(self.entries.drain(..live));
        self.sum -= gone_units;
        let stamp = self.newest.max(now_us);
        let newest = self.newest;
        match self.entries.back_mut() {
            Some(last) if last.stamp(newest) == stamp => *last = last.with_units(newest, last.units() + cost),
            _ => {
                let entries_max = entries_max(limit);
                if self.entries.len() >= entries_max {
                    self.merge(group_max(limit, self.sum + cost));
                }
                self.make_room(entries_max);
                self.entries.push_back(Entry::new(stamp, cost, false));
            }
        }
        self.newest = stamp;
        self.sum += cost;
        Position::At(stamp)
    }

    /// Lowers the entry with the charge's stamp, or the entry that it was merged into.
    fn refund(&mut self, limit: &Limit, now_us: u64, place: &ChargePlace, units: u64) -> u64 {
        let Some(stamp) = place.position.at() else { return 0 };
        if now_us.max(self.newest).checked_sub(limit.window_us()).is_some_and(|gone| stamp <= gone) {
            return 0;
        }
        let index = stamp.checked_sub(1).map_or(0, |earlier| self.first_after(earlier));
        let holds = |entry: &&Entry| {
            if entry.merged() { stamp > self.credited } else { entry.stamp(self.newest) == stamp }
        };
        let given = self.entries.get(index).filter(holds).map_or(0, |entry| entry.units().min(units));
        if given > 0 {
            self.lower(index, given);
        }
        given
    }

    fn credit(&mut self, limit: &Limit, now_us: u64, units: u64) -> u64 {
        let (live, gone_units) = self.live_from(limit, now_us);
        let given = units.min(self.sum - gone_units);
        let mut rest = given;
        while rest > 0 {
            let part = rest.min(self.entries[live].units());
            self.credited = self.credited.max(self.stamp(live));
            self.lower(live, part);
            rest -= part;
        }
        given
    }

    fn expires_us(limit: &Limit, position: Position) -> u64 {
        position.at().map_or(0, |stamp| stamp + limit.window_us())
    }

    fn ends_us(&self, limit: &Limit) -> u64 {
        if self.newest == 0 { 0 } else { self.newest + limit.window_us() }
    }

    fn charged_by_us(&self, _limit: &Limit) -> u64 {
        self.newest
    }

    fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    fn growth_bytes_max(&self, limit: &Limit, _now_us: u64, _cost: u64) -> usize {
        if self.entries.len() < self.entries.capacity() {
            return 0;
        }
        growth(self.entries.len(), entries_max(limit)) * size_of::<Entry>()
    }
}

/// By how many entries a full log of `len` grows.
fn growth(len: usize, entries_max: usize) -> usize {
    (len / 4).max(4).min(entries_max.saturating_sub(len))
}

fn entries_max(limit: &Limit) -> usize {
    let Algorithm::CompactLog(entries) = limit.algorithm() else {
        return Entries::DEFAULT.get().into();
    };
    entries.get().into()
}

/// The most units of a merged entry, when the log holds `sum`.
fn group_max(limit: &Limit, sum: u64) -> u64 {
    let room = entries_max(limit) as u64 - 2;
    (2 * limit.units().max(sum)).div_ceil(room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: &str, entries: u64) -> Limit {
        Limit::of(rate, Algorithm::CompactLog(Entries::new(entries).unwrap()))
    }

    fn entries(state: &CompactLog) -> Vec<(u64, u64)> {
        state.entries.iter().map(|entry| (entry.stamp(state.newest), entry.units())).collect()
    }

    #[test]
    fn a_full_log_merges_neighbours_into_the_later_stamp() {
        let limit = limit("8/10s", 6);
        let mut state = CompactLog::default();
        for now_us in 1..=6 {
            state.charge(&limit, now_us, 1);
        }
        assert_eq!(entries(&state).len(), 6, "exact while it fits");
        state.charge(&limit, 7, 1);
        assert_eq!(entries(&state), [(4, 4), (6, 2), (7, 1)], "groups of at most 2 x 8 / (6 - 2)");
        assert_eq!(state.usage(&limit, 7).used, 7);
        // The first unit left its window at 10,000,001, but its group is as young as its youngest.
        assert_eq!(state.usage(&limit, 10_000_003).used, 7);
        assert_eq!(state.usage(&limit, 10_000_004).used, 3);
    }

    #[test]
    fn memory_does_not_grow_with_the_limit() {
        let limit = limit("1000000000000/10s", 128);
        let mut state = CompactLog::default();
        for now_us in 0..100_000 {
            state.charge(&limit, now_us, 1_000);
        }
        assert!(state.heap_bytes() <= 12 * 128, "{}", state.heap_bytes());
        assert_eq!(state.usage(&limit, 100_000).used, 100_000_000);
    }

    #[test]
    fn memory_follows_what_is_live_and_a_lowered_k() {
        let (wide, narrow) = (limit("1000000/10s", 4_096), limit("1000000/10s", 4));
        let mut state = CompactLog::default();
        for now_us in 0..5_000 {
            state.charge(&wide, now_us, 1);
        }
        assert!(state.heap_bytes() > 10_000);
        let mut quiet = state.clone();
        for window in 1..20 {
            quiet.charge(&wide, window * 20_000_000, 1);
        }
        assert!(quiet.heap_bytes() < 1_000, "{}", quiet.heap_bytes());
        for now_us in 5_000..5_010 {
            state.charge(&narrow, now_us, 1);
        }
        assert!(state.heap_bytes() <= 12 * 16, "{}", state.heap_bytes());
        assert_eq!(state.usage(&narrow, 5_010).used, 5_010);
    }

    #[test]
    fn an_excess_far_above_the_limit_still_fits() {
        let limit = limit("10/10s", 4);
        let mut state = CompactLog::default();
        for now_us in 0..1_000 {
            state.charge(&limit, now_us, 160);
        }
        assert!(state.entries.len() <= 4);
        assert_eq!(state.usage(&limit, 1_000).used, 160_000);
    }
}
