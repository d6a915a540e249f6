//! An open-addressing table of fingerprints and states, in one array: all of a small table, a part of a large
//! one.
//!
//! ```text
//!   home = fingerprint x homes / 2^64        the higher the fingerprint, the further back
//!
//!   | 03.. | 11.. |      | 2f.. | 30.. | 31.. |      | ... | ff.. |   overflow   |
//!           `-- fingerprints ascend, with gaps; each stands at its home or a little behind --'
//! ```
//!
//! A fingerprint is a keyed hash of the key, so fingerprints are spread evenly and nobody can aim. As they
//! ascend, a search for an absent one ends at the first that is higher, and growing is one pass over both
//! arrays in order, which memory is fastest at. The last ones run over into a few slots behind the last
//! home instead of wrapping round.
//!
//! Growing by an eighth instead of doubling keeps the share of slots in use within a ninth of its most, so
//! bytes per key do not swing with the number of keys; the price, copying a key eight times until the table
//! has doubled, is small where copying is sequential. Small slots are kept less full than large ones: going
//! on to the next slot may mean waiting for memory again, and costs them fewer bytes to avoid.
//!
//! Rejected: a byte of every fingerprint in an array of its own, to know the slot before looking at it. With
//! a million keys those bytes are far away too, and one is waited for after the other.

use super::prefetch::prefetch;
use crate::algorithm::Window;

/// Most slots behind the last home. At seven eighths full, running over by so many is a matter of one in a
/// hundred million; should it happen, the table grows.
const OVERFLOW_MAX: usize = 64;
/// Homes of the smallest table: small, as there is one per shard and limit.
const HOMES_MIN: usize = 4;

/// Slots of at most so many bytes are kept less full.
const SMALL_BYTES: usize = 64;

/// One key.
#[derive(Debug, Clone, Default)]
struct Slot<S> {
    /// 0 if the slot is free.
    fingerprint: u64,
    state: S,
}

/// States by fingerprint.
#[derive(Debug)]
pub(in crate::store::memory) struct Part<S> {
    slots: Vec<Slot<S>>,
    homes: usize,
    len: usize,
    /// Where the sweep goes on.
    cursor: usize,
    /// High bits that all its fingerprints have in common.
    common_bits: u32,
}

impl<S> Default for Part<S> {
    fn default() -> Self {
        Self::of_common_bits(0)
    }
}

/// Where a fingerprint is, or where it would stand.
pub(in crate::store::memory) enum SlotIndex {
    Occupied(usize),
    Vacant(usize),
}

impl<S> Part<S> {
    /// An empty one for fingerprints that have so many high bits in common.
    pub(in crate::store::memory) fn of_common_bits(common_bits: u32) -> Self {
        Self { slots: Vec::new(), homes: 0, len: 0, cursor: 0, common_bits }
    }
}

impl<S: Window> Part<S> {
    pub(in crate::store::memory) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the array, as the budget counts them.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        Self::bytes_with(self.homes)
    }

    /// Bytes of an array with so many homes, as the budget counts them.
    pub(in crate::store::memory) fn bytes_with(homes: usize) -> usize {
        // Half as much again: what a table gives back when it grows stays with the allocator for a while.
        slots_for(homes) * size_of::<Slot<S>>() / 2 * 3
    }

    /// Of so many eighths of all homes at most there are keys.
    const EIGHTHS_MAX: usize = if size_of::<Slot<S>>() <= SMALL_BYTES { 6 } else { 7 };

    fn len_max(homes: usize) -> usize {
        homes * Self::EIGHTHS_MAX / 8
    }

    /// So many homes that the table is grown again when an eighth more keys have come.
    pub(in crate::store::memory) fn homes_for(len: usize) -> usize {
        ((len + len / 8) * 8).div_ceil(Self::EIGHTHS_MAX) + HOMES_MIN
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the product of a fraction and a length is no longer"
    )]
    fn home(&self, fingerprint: u64) -> usize {
        let scaled = u128::from(fingerprint << self.common_bits) * self.homes as u128;
        (scaled >> 64) as usize
    }

    #[inline]
    pub(in crate::store::memory) fn find(&self, fingerprint: u64) -> SlotIndex {
        let mut index = self.home(fingerprint);
        while let Some(slot) = self.slots.get(index) {
            if slot.fingerprint == fingerprint {
                return SlotIndex::Occupied(index);
            }
            if slot.fingerprint == 0 || slot.fingerprint > fingerprint {
                break;
            }
            index += 1;
        }
        SlotIndex::Vacant(index)
    }

    /// Prefetches the slot that is the home of a fingerprint.
    #[inline]
    pub(in crate::store::memory) fn prefetch(&self, fingerprint: u64) {
        if let Some(slot) = self.slots.get(self.home(fingerprint)) {
            prefetch(slot);
        }
    }

    #[inline]
    pub(in crate::store::memory) fn state_at(&mut self, index: usize) -> &mut S {
        &mut self.slots[index].state
    }

    pub(in crate::store::memory) fn get(&self, fingerprint: u64) -> Option<&S> {
        match self.find(fingerprint) {
            SlotIndex::Occupied(index) => Some(&self.slots[index].state),
            SlotIndex::Vacant(_) => None,
        }
    }

    /// Puts in a fingerprint that is not there; says where, or gives the state back if the table has to
    /// grow first.
    pub(in crate::store::memory) fn insert(&mut self, fingerprint: u64, state: S) -> Result<usize, S> {
        if self.len >= Self::len_max(self.homes) {
            return Err(state);
        }
        let SlotIndex::Vacant(index) = self.find(fingerprint) else { unreachable!("it is not there yet") };
        let run = self.slots[index..].iter().position(|slot| slot.fingerprint == 0);
        let Some(run) = run else { return Err(state) };
        self.slots[index..=index + run].rotate_right(1);
        self.slots[index] = Slot { fingerprint, state };
        self.len += 1;
        Ok(index)
    }

    /// Puts in a fingerprint that is not there, in a larger array if it must be.
    pub(in crate::store::memory) fn put(&mut self, fingerprint: u64, state: S) {
        let mut put = self.insert(fingerprint, state);
        while let Err(state) = put {
            self.rebuild(self.homes_next(), |_| false, |_| unreachable!("nothing is gone"));
            put = self.insert(fingerprint, state);
        }
    }

    /// The same keys with states of another kind.
    pub(in crate::store::memory) fn converted<T: Window>(self, mut convert: impl FnMut(S) -> T) -> Part<T> {
        let mut converted = Part::of_common_bits(self.common_bits);
        converted.rebuild(Part::<T>::homes_for(self.len), |_| false, |_| unreachable!("nothing is there"));
        for (fingerprint, state) in self.into_iter() {
            converted.put(fingerprint, convert(state));
        }
        converted
    }

    pub(in crate::store::memory) fn remove(&mut self, fingerprint: u64) -> Option<S> {
        let SlotIndex::Occupied(index) = self.find(fingerprint) else { return None };
        Some(self.remove_at(index))
    }

    /// Takes a slot out and moves those behind it forward that stand behind their homes.
    fn remove_at(&mut self, index: usize) -> S {
        let state = std::mem::take(&mut self.slots[index]).state;
        let moved = self.slots[index + 1..].iter().enumerate().take_while(|(offset, slot)| {
            slot.fingerprint != 0 && self.home(slot.fingerprint) <= index + offset
        });
        let moved = moved.count();
        self.slots[index..=index + moved].rotate_left(1);
        self.len -= 1;
        state
    }

    /// How many homes suit the table when one more key comes.
    pub(in crate::store::memory) fn homes_next(&self) -> usize {
        Self::homes_for(self.len + 1).max(self.homes + HOMES_MIN)
    }

    /// The same when those that are `gone` are dropped.
    pub(in crate::store::memory) fn homes_next_without(&self, gone: impl Fn(&S) -> bool) -> usize {
        let live = self.iter().filter(|(_, state)| !gone(state)).count();
        if live == self.len { self.homes_next() } else { Self::homes_for(live + 1).min(self.homes_next()) }
    }

    /// Moves everything but what is `gone` into an array of `homes` homes; hands out what was dropped.
    pub(in crate::store::memory) fn rebuild(
        &mut self,
        homes: usize,
        gone: impl Fn(&S) -> bool,
        mut dropped: impl FnMut(S),
    ) {
        let mut homes = homes;
        let old = std::mem::take(&mut self.slots);
        let mut live: Vec<Slot<S>> = Vec::new();
        let mut slots = old.into_iter();
        loop {
            let mut next = Self { homes, ..Self::of_common_bits(self.common_bits) };
            next.slots.resize_with(slots_for(homes), Slot::default);
            let mut end = 0;
            let mut fits = true;
            for slot in live.drain(..).chain(&mut slots) {
                if slot.fingerprint == 0 {
                    continue;
                }
                if gone(&slot.state) {
                    dropped(slot.state);
                    continue;
                }
                let index = next.home(slot.fingerprint).max(end);
                if index >= next.slots.len() {
                    // Hardly ever: so many ran over the end that it takes a larger array.
                    fits = false;
                    next.slots.push(slot);
                    continue;
                }
                next.slots[index] = slot;
                next.len += 1;
                end = index + 1;
            }
            if fits {
                *self = next;
                return;
            }
            live = next.slots;
            homes += homes / 8 + HOMES_MIN;
        }
    }

    /// Looks at up to `count` slots from where the sweep stands and drops those that are `gone`; says
    /// whether it came round.
    pub(in crate::store::memory) fn sweep(
        &mut self,
        count: usize,
        gone: impl Fn(u64, &S) -> bool,
        mut dropped: impl FnMut(u64, S),
    ) -> bool {
        let mut looked = 0;
        while looked < count {
            let Some(slot) = self.slots.get(self.cursor) else {
                self.cursor = 0;
                return true;
            };
            if slot.fingerprint != 0 && gone(slot.fingerprint, &slot.state) {
                // The one behind it may have come forward: look here again.
                let fingerprint = slot.fingerprint;
                dropped(fingerprint, self.remove_at(self.cursor));
            } else {
                self.cursor += 1;
            }
            looked += 1;
        }
        false
    }

    /// The next sweep begins at the first slot.
    pub(in crate::store::memory) fn restart_sweep(&mut self) {
        self.cursor = 0;
    }

    /// Makes the array smaller if less than half as many keys are there as could be.
    pub(in crate::store::memory) fn shrink(&mut self) {
        if let Some(homes) = self.homes_less() {
            self.rebuild(homes, |_| false, |_| unreachable!("nothing is gone"));
        }
    }

    /// The number of homes to shrink to.
    fn homes_less(&self) -> Option<usize> {
        let homes = if self.len == 0 { 0 } else { Self::homes_for(self.len) };
        (self.homes > 0 && homes * 2 <= self.homes).then_some(homes)
    }

    /// The fingerprint that was charged longest ago, by `charged_us`, of the next `count` from that of
    /// `fingerprint` on that need not stay.
    pub(in crate::store::memory) fn oldest_from(
        &self,
        fingerprint: u64,
        count: usize,
        stays: impl Fn(u64) -> bool,
        charged_us: impl Fn(&S) -> u64,
    ) -> Option<u64> {
        let (SlotIndex::Occupied(index) | SlotIndex::Vacant(index)) = self.find(fingerprint);
        let index = index.min(self.slots.len());
        let around = self.slots[index..].iter().chain(&self.slots[..index]);
        let keys = around.filter(|slot| slot.fingerprint != 0 && !stays(slot.fingerprint)).take(count);
        keys.min_by_key(|slot| charged_us(&slot.state)).map(|slot| slot.fingerprint)
    }

    /// All keys, by ascending fingerprint.
    pub(in crate::store::memory) fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        let keys = self.slots.iter().filter(|slot| slot.fingerprint != 0);
        keys.map(|slot| (slot.fingerprint, &slot.state))
    }

    pub(in crate::store::memory) fn into_iter(self) -> impl Iterator<Item = (u64, S)> {
        let keys = self.slots.into_iter().filter(|slot| slot.fingerprint != 0);
        keys.map(|slot| (slot.fingerprint, slot.state))
    }

    pub(in crate::store::memory) fn states_mut(&mut self) -> impl Iterator<Item = &mut S> {
        let keys = self.slots.iter_mut().filter(|slot| slot.fingerprint != 0);
        keys.map(|slot| &mut slot.state)
    }
}

/// Slots of so many homes, those behind the last included.
fn slots_for(homes: usize) -> usize {
    if homes == 0 { 0 } else { homes + (HOMES_MIN + homes / 4).min(OVERFLOW_MAX) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::algorithm::FixedWindow;
    use crate::rule::{Algorithm, Decimal, Limit};
    use crate::testing::Rng;

    fn limit() -> Limit {
        Limit::new("1000000/1s".parse().unwrap(), Decimal::ZERO, Algorithm::FixedWindow)
    }

    fn state(units: u64) -> FixedWindow {
        let mut state = FixedWindow::default();
        state.charge(&limit(), 1, units);
        state
    }

    fn units(state: &FixedWindow) -> u64 {
        state.usage(&limit(), 1).used
    }

    /// What must hold of every part: ascending, at or behind their homes, with no gap in between.
    fn assert_ordered(table: &Part<FixedWindow>) {
        let mut last = 0;
        for (index, slot) in table.slots.iter().enumerate().filter(|(_, slot)| slot.fingerprint != 0) {
            assert!(slot.fingerprint > last, "fingerprints ascend");
            last = slot.fingerprint;
            let home = table.home(slot.fingerprint);
            assert!(home <= index, "no key stands before its home");
            assert!(table.slots[home..index].iter().all(|slot| slot.fingerprint != 0), "no gap on the way");
        }
        assert_eq!(table.iter().count(), table.len());
    }

    /// Small numbers as fingerprints crowd the first home; spread ones do not.
    #[test]
    fn a_part_is_a_map() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let spread = if seed % 2 == 0 {
                1
            } else if seed % 4 == 3 {
                u64::MAX / 2_400
            } else {
                u64::MAX / 300
            };
            let (mut table, mut map) =
                (Part::of_common_bits(if seed % 4 == 3 { 3 } else { 0 }), BTreeMap::new());
            for step in 0..2_000 {
                let fingerprint = rng.between(1, 300) * spread;
                match rng.below(8) {
                    0..4 => {
                        if let SlotIndex::Occupied(index) = table.find(fingerprint) {
                            *table.state_at(index) = state(step + 1);
                        } else if table.insert(fingerprint, state(step + 1)).is_err() {
                            let homes = table.homes_next();
                            table.rebuild(homes, |_| false, |_| panic!("nothing is gone"));
                            table.insert(fingerprint, state(step + 1)).unwrap();
                        }
                        map.insert(fingerprint, step + 1);
                    }
                    4..6 => {
                        let removed = table.remove(fingerprint).as_ref().map(units);
                        assert_eq!(removed, map.remove(&fingerprint), "seed {seed}");
                    }
                    6 => {
                        let odd = |state: &FixedWindow| units(state) % 16 == 1;
                        table.sweep(
                            10,
                            |_, state| odd(state),
                            |fingerprint, state| {
                                assert_eq!(map.remove(&fingerprint), Some(units(&state)), "seed {seed}");
                            },
                        );
                        table.shrink();
                    }
                    _ => assert_eq!(table.get(fingerprint).map(units), map.get(&fingerprint).copied()),
                }
                assert_ordered(&table);
            }
            let all: Vec<_> = table.iter().map(|(fingerprint, state)| (fingerprint, units(state))).collect();
            assert_eq!(all, map.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn a_sweep_comes_round_and_the_table_shrinks_to_nothing() {
        let mut table = Part::default();
        let mut rng = Rng::new(7);
        while table.len() < 1_000 {
            let fingerprint = rng.below(u64::MAX) | 1;
            if table.get(fingerprint).is_none() && table.insert(fingerprint, state(1)).is_err() {
                let homes = table.homes_next();
                table.rebuild(homes, |_| false, |_| panic!("nothing is gone"));
            }
        }
        assert!(table.slots.len() < 1_900, "{}", table.slots.len());
        let mut dropped = 0;
        while !table.sweep(64, |_, _| true, |_, _| dropped += 1) {}
        while !table.sweep(64, |_, _| true, |_, _| dropped += 1) {}
        assert_eq!((dropped, table.len(), table.homes_less()), (1_000, 0, Some(0)));
        table.shrink();
        assert_eq!((table.bytes(), table.get(5)), (0, None));
    }

    #[test]
    fn rebuilding_drops_what_is_gone() {
        let mut table = Part::default();
        table.rebuild(64, |_| false, |_| {});
        for fingerprint in 1..=40 {
            table.insert(fingerprint << 58, state(fingerprint)).unwrap();
        }
        let mut dropped = Vec::new();
        table.rebuild(64, |state| units(state) > 10, |state| dropped.push(units(&state)));
        assert_eq!((table.len(), dropped), (10, (11..=40).collect()));
        assert_ordered(&table);
    }
}
