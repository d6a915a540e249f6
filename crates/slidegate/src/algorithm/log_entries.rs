//! The entries of a `sliding-log`: a few in place, in the table's slot; more of them in a block on the heap.
//!
//! Most keys are seen a few times per window: they need one cache line and no allocation. In place a stamp is its low
//! 32 bits: all stamps in place lie within 2^32 us (71 minutes) of the newest, which is kept in full. Stamps further
//! apart and entries with costs go to the block.

use super::log_block::{Block, bytes_at_most};

/// Entries, oldest first; up to `PLACES` of them are stored in place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entries<const PLACES: usize> {
    newest: u64,
    storage: Storage<PLACES>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Storage<const PLACES: usize> {
    /// Each of cost 1. Unused places are zero.
    InPlace {
        len: u8,
        lows: [Low; PLACES],
    },
    OnHeap(Block),
}

impl<const PLACES: usize> Default for Storage<PLACES> {
    fn default() -> Self {
        Self::InPlace { len: 0, lows: [Low::default(); PLACES] }
    }
}

/// The last 32 bits of a stamp, unaligned: so five of them fit beside the first byte of a block, which tells the two
/// kinds of storage apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Low([u8; 4]);

impl Low {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are kept")]
    fn of(stamp: u64) -> Self {
        Self((stamp as u32).to_le_bytes())
    }

    /// How much earlier it is than `newest`, which is at most 2^32 us later.
    #[inline]
    fn age_at(self, newest: Self) -> u64 {
        u32::from_le_bytes(newest.0).wrapping_sub(u32::from_le_bytes(self.0)).into()
    }
}

impl<const PLACES: usize> Entries<PLACES> {
    /// Entries move from the heap back in place when at most this many are left: fewer than fit, as a hysteresis.
    const IN_PLACE_AGAIN_MAX: usize = PLACES * 2 / 5;

    /// The stamp of the newest entry or, if there is none, of the last one that was removed; 0 if there never was one.
    #[inline]
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// No entries; the last one was at `newest`.
    pub(super) fn emptied(newest: u64) -> Self {
        Self { newest, storage: Storage::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.storage {
            Storage::InPlace { len, .. } => usize::from(*len),
            Storage::OnHeap(block) => block.len(),
        }
    }

    #[inline]
    pub(super) fn stamp(&self, index: usize) -> u64 {
        match &self.storage {
            Storage::InPlace { lows, .. } => self.newest - lows[index].age_at(Low::of(self.newest)),
            Storage::OnHeap(block) => block.stamp(index),
        }
    }

    /// Index of the first entry later than `stamp`. Usually few entries are earlier.
    #[inline]
    pub(super) fn first_after(&self, stamp: u64) -> usize {
        match &self.storage {
            Storage::InPlace { len, lows } => {
                let Some(later_us) = self.newest.checked_sub(stamp) else { return usize::from(*len) };
                let newest = Low::of(self.newest);
                let earlier = |low: &&Low| low.age_at(newest) >= later_us;
                lows[..usize::from(*len)].iter().take_while(earlier).count()
            }
            Storage::OnHeap(block) => block.first_after(stamp),
        }
    }

    /// Units in entries `from..to`.
    #[inline]
    pub(super) fn units(&self, from: usize, to: usize) -> u64 {
        match &self.storage {
            Storage::InPlace { .. } => (to - from) as u64,
            Storage::OnHeap(block) => block.units(from, to),
        }
    }

    /// The first entry at or after `from` with which the entries since `from` hold at least `units`. There is one.
    pub(super) fn entry_reaching(&self, from: usize, units: u64) -> usize {
        match &self.storage {
            Storage::InPlace { .. } => from + usize::try_from(units).expect("no more units than entries") - 1,
            Storage::OnHeap(block) => block.entry_reaching(from, units),
        }
    }

    #[inline]
    pub(super) fn drop_front(&mut self, count: usize) {
        match &mut self.storage {
            _ if count == 0 => {}
            Storage::InPlace { len, lows } => remove(len, lows, 0, count),
            Storage::OnHeap(block) if count == block.len() => self.storage = Storage::default(),
            Storage::OnHeap(block) => {
                block.drop_front(count);
                if block.len() <= Self::IN_PLACE_AGAIN_MAX {
                    self.move_in_place();
                }
            }
        }
    }

    /// Moves entries from the heap back in place if they fit with room to spare.
    fn move_in_place(&mut self) {
        if self.heap_bytes() > 0 && self.fits(Self::IN_PLACE_AGAIN_MAX) {
            self.storage = self.in_place();
        }
    }

    /// Whether all entries fit into `places` places.
    pub(super) fn fits(&self, places: usize) -> bool {
        let costs_are_one = match &self.storage {
            Storage::InPlace { .. } => true,
            Storage::OnHeap(block) => block.all_costs_are_one(),
        };
        let len = self.len();
        costs_are_one && len <= places && (len == 0 || u32::try_from(self.newest - self.stamp(0)).is_ok())
    }

    /// All entries in place; they must fit.
    fn in_place<const TO: usize>(&self) -> Storage<TO> {
        let (mut lows, len) = ([Low::default(); TO], self.len());
        for (index, place) in lows[..len].iter_mut().enumerate() {
            *place = Low::of(self.stamp(index));
        }
        Storage::InPlace { len: u8::try_from(len).expect("a few"), lows }
    }

    /// A heap block of all entries, with room for one more.
    fn on_heap(&self, with_costs: bool) -> Block {
        Block::of_units(with_costs, (0..self.len()).map(|index| self.stamp(index)))
    }

    /// The same entries with another number of places; in place if they fit.
    pub(super) fn refitted<const TO: usize>(self) -> Entries<TO> {
        let storage = if self.fits(TO) {
            self.in_place()
        } else if let Storage::OnHeap(block) = self.storage {
            Storage::OnHeap(block)
        } else {
            Storage::OnHeap(self.on_heap(false))
        };
        Entries { newest: self.newest, storage }
    }

    /// Adds `cost` units at `stamp`, which is no earlier than the newest.
    #[inline]
    pub(super) fn push(&mut self, stamp: u64, cost: u64) {
        if let Storage::OnHeap(block) = &mut self.storage {
            block.push(stamp, cost);
        } else if !self.push_in_place(stamp, cost) {
            self.push_on_heap(stamp, cost);
        }
        self.newest = stamp;
    }

    /// Pushes in place; false if the entry does not fit there.
    #[inline]
    fn push_in_place(&mut self, stamp: u64, cost: u64) -> bool {
        let Storage::InPlace { len, lows } = &mut self.storage else { return false };
        let index = usize::from(*len);
        // The age of the oldest entry when the new one is the newest.
        let span_us = stamp - self.newest + lows[0].age_at(Low::of(self.newest));
        if cost > 1 || index == PLACES || (index > 0 && span_us > u64::from(u32::MAX)) {
            return false;
        }
        lows[index] = Low::of(stamp);
        *len += 1;
        true
    }

    /// Drops the entries that are `window_us` old at `now_us` and pushes one unit, if at most `units` remain with it and
    /// neither storage nor size changes. Returns how many remain; `None`, without any change, in all other cases.
    #[inline]
    pub(super) fn push_fast(&mut self, now_us: u64, window_us: u64, units: u64) -> Option<u64> {
        let since_newest_us = now_us.checked_sub(self.newest)?;
        let newest = Low::of(self.newest);
        let used = match &mut self.storage {
            Storage::InPlace { len, lows } => {
                let expired = |low: &&Low| low.age_at(newest) + since_newest_us >= window_us;
                let before = usize::from(*len);
                let gone = lows.get(..before)?.iter().take_while(expired).count();
                let live = before - gone;
                // In a window below 2^32 us all live stamps are close enough to the new one.
                if live >= PLACES || live as u64 >= units || u32::try_from(window_us).is_err() {
                    return None;
                }
                if gone > 0 {
                    remove(len, lows, 0, gone);
                }
                lows[live] = Low::of(now_us);
                *len += 1;
                live + 1
            }
            Storage::OnHeap(block) => {
                let gone = now_us.checked_sub(window_us)?;
                block.push_fast(now_us, gone, Self::IN_PLACE_AGAIN_MAX + 1, units - 1)?
            }
        };
        self.newest = now_us;
        Some(used as u64)
    }

    /// Moves the entries to the heap and pushes there.
    #[inline(never)]
    fn push_on_heap(&mut self, stamp: u64, cost: u64) {
        let mut block = self.on_heap(cost > 1);
        block.push(stamp, cost);
        self.storage = Storage::OnHeap(block);
    }

    /// Takes `units` away from the entries `index..` that hold them, oldest first.
    pub(super) fn lower(&mut self, index: usize, units: u64) {
        match &mut self.storage {
            _ if units == 0 => return,
            Storage::InPlace { len, lows } => {
                remove(len, lows, index, usize::try_from(units).expect("no more units than entries"));
            }
            Storage::OnHeap(block) => block.lower(index, units),
        }
        match self.len().checked_sub(1) {
            Some(last) => {
                self.newest = self.stamp(last);
                self.move_in_place();
            }
            None => self.storage = Storage::default(),
        }
    }

    /// Most heap bytes by which a push of `cost` at `now_us` grows the log, given that entries older than `window_us`
    /// are dropped first and that at most `units` remain with the new one.
    #[inline]
    pub(super) fn growth_bytes_max(&self, now_us: u64, window_us: u64, units: u64, cost: u64) -> usize {
        match &self.storage {
            Storage::InPlace { len, .. } => {
                let len = usize::from(*len);
                let has_place = len < PLACES || units <= PLACES as u64;
                let spans_u32 = || u32::try_from(window_us).is_ok() || self.live_span_fits(now_us, window_us);
                if cost == 1 && has_place && spans_u32() { 0 } else { bytes_at_most(cost > 1, len) }
            }
            Storage::OnHeap(block) => block.growth_bytes_max(cost),
        }
    }

    /// Whether all live entries are close enough to an entry at `now_us` to stay in place with it.
    fn live_span_fits(&self, now_us: u64, window_us: u64) -> bool {
        let stamp = now_us.max(self.newest);
        let oldest = self.first_after(stamp.saturating_sub(window_us));
        oldest == self.len() || u32::try_from(stamp - self.stamp(oldest)).is_ok()
    }

    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.storage {
            Storage::InPlace { .. } => 0,
            Storage::OnHeap(block) => block.heap_bytes(),
        }
    }
}

/// Takes out entries `index..index + count`.
fn remove<const PLACES: usize>(len: &mut u8, lows: &mut [Low; PLACES], index: usize, count: usize) {
    let before = usize::from(*len);
    lows.copy_within(index + count..before, index);
    lows[before - count..before].fill(Low::default());
    *len -= u8::try_from(count).expect("no more than there are");
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::testing::Rng;

    /// Property test against a plain list of (stamp, units).
    #[test]
    fn entries_behave_like_a_list() {
        for seed in 0..200 {
            compare_with_a_list::<5, 11>(seed);
            compare_with_a_list::<11, 5>(seed);
        }
    }

    fn compare_with_a_list<const PLACES: usize, const OTHER: usize>(seed: u64) {
        let mut rng = Rng::new(seed);
        let (mut entries, mut list) = (Entries::<PLACES>::default(), VecDeque::<(u64, u64)>::new());
        let with_costs = seed % 2 == 0;
        let mut now = 1;
        for _ in 0..300 {
            if rng.one_in(8) {
                let refitted = entries.clone().refitted::<OTHER>();
                assert_eq!(refitted.heap_bytes() == 0, entries.fits(OTHER), "seed {seed}");
                entries = refitted.refitted();
            }
            match rng.below(10) {
                0..6 => {
                    now += if seed % 3 == 0 && rng.one_in(9) { rng.below(3 << 31) } else { rng.below(3) };
                    let cost = if with_costs && rng.one_in(3) { rng.between(1, 50) } else { 1 };
                    entries.push(now, cost);
                    match list.back_mut() {
                        Some((stamp, units)) if *stamp == now => *units += cost,
                        _ => list.push_back((now, cost)),
                    }
                }
                6..8 => {
                    let gone = now.saturating_sub(rng.below(30));
                    entries.drop_front(entries.first_after(gone));
                    list.retain(|&(stamp, _)| stamp > gone);
                }
                _ if list.is_empty() => {}
                _ => {
                    let at = usize::try_from(rng.below(list.len() as u64)).unwrap();
                    let (stamp, held) = list[at];
                    let units = rng.between(1, held);
                    let from = entries.first_after(stamp - 1);
                    entries.lower(from, units);
                    list[at].1 -= units;
                    list.retain(|&(_, units)| units > 0);
                }
            }
            let all: u64 = list.iter().map(|&(_, units)| units).sum();
            assert_eq!(entries.units(0, entries.len()), all, "seed {seed}");
            if let Some(&(newest, _)) = list.back() {
                assert_eq!(entries.newest(), newest, "seed {seed}");
            }
            let mut sum = 0;
            for &(stamp, units) in &list {
                let (from, to) = (entries.first_after(stamp - 1), entries.first_after(stamp));
                assert_eq!(entries.units(from, to), units, "seed {seed}: at {stamp}");
                sum += units;
                assert_eq!(entries.stamp(entries.entry_reaching(0, sum)), stamp, "seed {seed}");
            }
        }
    }

    #[test]
    fn growth_stays_within_its_announced_maximum() {
        let mut rng = Rng::new(3);
        for unit_costs in [1, 40] {
            let mut entries = Entries::<5>::default();
            for now in 1..3_000 {
                let cost = if rng.one_in(unit_costs) { 1 } else { rng.between(1, 9) };
                let most = entries.heap_bytes() + entries.growth_bytes_max(now, 900, u64::MAX, cost);
                entries.drop_front(entries.first_after((now + 1_u64).saturating_sub(rng.between(1, 900))));
                entries.push(now, cost);
                assert!(entries.heap_bytes() <= most, "{} {most}", entries.heap_bytes());
            }
        }
    }
}
