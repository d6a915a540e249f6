//! An open-addressing hash table of fingerprints and states in one array: a small table, or a part of a large
//! one.
//!
//! ```text
//!   home = fingerprint x homes / 2^64        the higher the fingerprint, the further back
//!
//!   | 03.. | 11.. |      | 2f.. | 30.. | 31.. |      | ... | ff.. |   overflow   |
//!           `-- fingerprints ascend, with gaps; each is at its home or a little behind --'
//! ```
//!
//! A fingerprint is a keyed hash of the key, so fingerprints are spread evenly and clients cannot choose them. As they
//! ascend, a search for an absent one ends at the first that is higher, and growing is one sequential pass over both
//! arrays. The last ones overflow into a few slots behind the last home instead of wrapping round.
//!
//! Growing by an eighth instead of doubling keeps the load factor within a ninth of its maximum, so
//! bytes per key vary little with the number of keys. The price is copying a key eight times until the table
//! has doubled, which is cheap because it is sequential. Small slots have a lower load factor than large ones: a probe
//! of the next slot may be another cache miss, and avoiding it costs them fewer bytes.
//!
//! Rejected: an array of one-byte tags, to find the slot before reading it. With a million keys the tags are cache
//! misses too, followed by that of the slot. And homes of whole cache lines, so that fewer keys spill into the next line:
//! with a million keys it was no faster.

use crate::algorithm::Window;
use crate::store::memory::slot_hints::SlotArray;

/// Most slots behind the last home. At seven eighths full, one table in a hundred million needs more; it grows then.
const OVERFLOW_MAX: usize = 64;
/// Homes of the smallest table: few, as there is a table per shard and limit.
const HOMES_MIN: usize = 4;

/// Slots of at most this size have the lower load factor.
const SMALL_BYTES: usize = 64;

/// One outgrown state in this many keys is many.
const OUTGROWN_OF: usize = 4;

/// One key.
#[derive(Debug, Clone, Default)]
#[repr(C)]
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
    /// The next slot to sweep.
    cursor: usize,
    /// Number of high bits that all its fingerprints have in common.
    common_bits: u32,
    /// States that outgrew their slot since the slot width was last considered.
    outgrown: u32,
}

impl<S> Default for Part<S> {
    fn default() -> Self {
        Self::of_common_bits(0)
    }
}

/// The slot of a fingerprint, or the slot where it would be inserted.
pub(in crate::store::memory) enum SlotIndex {
    Occupied(usize),
    Vacant(usize),
}

impl<S> Part<S> {
    /// An empty part for fingerprints with `common_bits` high bits in common.
    pub(in crate::store::memory) fn of_common_bits(common_bits: u32) -> Self {
        Self { slots: Vec::new(), homes: 0, len: 0, cursor: 0, common_bits, outgrown: 0 }
    }

    /// Moves all keys out.
    pub(in crate::store::memory) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::of_common_bits(self.common_bits))
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

    /// Bytes of an array with `homes` homes, as the budget counts them.
    pub(in crate::store::memory) fn bytes_with(homes: usize) -> usize {
        // Times 3/2: allocators keep freed arrays for a while.
        slots_for(homes) * size_of::<Slot<S>>() / 2 * 3
    }

    /// The maximum load factor, in eighths.
    const EIGHTHS_MAX: usize = if size_of::<Slot<S>>() <= SMALL_BYTES { 6 } else { 7 };

    fn len_max(homes: usize) -> usize {
        homes * Self::EIGHTHS_MAX / 8
    }

    /// Homes for `len` keys and an eighth more.
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

    /// The state of a fingerprint, with one check of the bounds.
    #[inline]
    pub(in crate::store::memory) fn get_mut(&mut self, fingerprint: u64) -> Option<&mut S> {
        let home = self.home(fingerprint);
        for slot in self.slots.get_mut(home..)? {
            if slot.fingerprint == fingerprint {
                return Some(&mut slot.state);
            }
            if slot.fingerprint == 0 || slot.fingerprint > fingerprint {
                break;
            }
        }
        None
    }

    /// The address of the slot that is the home of a fingerprint.
    #[inline]
    pub(in crate::store::memory) fn home_address(&self, fingerprint: u64) -> usize {
        let offset = self.home(fingerprint) * size_of::<Slot<S>>();
        self.slots.as_ptr().addr().wrapping_add(offset)
    }

    /// Counts a state that outgrew its slot. Returns whether many have, and counts anew.
    pub(in crate::store::memory) fn count_outgrown(&mut self) -> bool {
        self.outgrown += 1;
        let many = self.outgrown as usize * OUTGROWN_OF >= self.len;
        if many {
            self.outgrown = 0;
        }
        many
    }

    /// Where its slots are.
    #[inline]
    pub(in crate::store::memory) fn array(&self) -> SlotArray {
        SlotArray {
            address: self.slots.as_ptr().addr(),
            homes: self.homes,
            slot_bytes: size_of::<Slot<S>>(),
            common_bits: self.common_bits,
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

    /// Inserts a new fingerprint; returns its index, or the state if the table has to grow first.
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

    /// Inserts a new fingerprint with the state of a new key; `None` if the table has to grow first.
    pub(in crate::store::memory) fn insert_new(&mut self, fingerprint: u64) -> Option<usize> {
        self.insert(fingerprint, S::default()).ok()
    }

    /// Inserts a new fingerprint; grows the array if needed.
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
        if self.len > 0 {
            converted.rebuild(
                Part::<T>::homes_for(self.len),
                |_| false,
                |_| unreachable!("nothing is there"),
            );
        }
        for (fingerprint, state) in self.into_iter() {
            converted.put(fingerprint, convert(state));
        }
        converted
    }

    pub(in crate::store::memory) fn remove(&mut self, fingerprint: u64) -> Option<S> {
        let SlotIndex::Occupied(index) = self.find(fingerprint) else { return None };
        Some(self.remove_at(index))
    }

    /// Removes a slot and moves the following slots that are behind their homes forward.
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

    /// Homes for one more key.
    pub(in crate::store::memory) fn homes_next(&self) -> usize {
        Self::homes_for(self.len + 1).max(self.homes + HOMES_MIN)
    }

    /// Homes for one more key after dropping the states that are `gone`.
    pub(in crate::store::memory) fn homes_next_without(&self, gone: impl Fn(&S) -> bool) -> usize {
        let live = self.iter().filter(|(_, state)| !gone(state)).count();
        if live == self.len { self.homes_next() } else { Self::homes_for(live + 1).min(self.homes_next()) }
    }

    /// Moves all states that are not `gone` into an array of `homes` homes; passes the others to `dropped`.
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
                if !fits || index >= next.slots.len() {
                    // Very rare: the overflow slots are full, so the array must be larger. From here on the slots are
                    // only collected.
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

    /// Sweeps up to `count` slots from the cursor and drops those that are `gone`; returns whether it reached the end.
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
                // The next slot may have moved here: check this index again.
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

    /// Shrinks the array if half of its homes would suffice.
    pub(in crate::store::memory) fn shrink(&mut self) {
        if let Some(homes) = self.homes_less() {
            self.rebuild(homes, |_| false, |_| unreachable!("nothing is gone"));
        }
    }

    /// The number of homes to shrink to, if shrinking is worth it.
    fn homes_less(&self) -> Option<usize> {
        let homes = if self.len == 0 { 0 } else { Self::homes_for(self.len) };
        (self.homes > 0 && homes * 2 <= self.homes).then_some(homes)
    }

    /// The fingerprint charged longest ago, by `charged_us`, among the next `count` from `fingerprint` on, ignoring
    /// those that must stay.
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

/// Slots for `homes` homes, with those behind the last.
fn slots_for(homes: usize) -> usize {
    if homes == 0 { 0 } else { homes + (HOMES_MIN + homes / 4).min(OVERFLOW_MAX) }
}

#[cfg(test)]
mod tests;
