//! States by fingerprint: one part while there are few keys, split into eight when there are many.
//!
//! A part grows by moving to a larger array, so it must stay small: with ten million keys in a store of 256 shards a
//! part has five thousand, and growing usually takes 0.2 ms; an allocator that returns pages to the system in the same
//! call can make it milliseconds. Rejected: more shards, whose locks and rules exceed the nearer caches; and growing in
//! place with an array in chunks, which was no faster.

use super::part::Part;
use super::room::rounded;
use crate::algorithm::Window;
use crate::store::memory::budget::Budget;

/// High bits of a fingerprint that choose its part.
const PART_BITS: u32 = 3;
const PARTS: usize = 1 << PART_BITS;
/// Most keys of a table with one part: few enough to be moved at once.
const LEN_ONE_MAX: usize = 2_048;

/// States by fingerprint.
#[derive(Debug)]
pub(in crate::store::memory) struct Table<S> {
    parts: Parts<S>,
    /// The part that is swept next.
    swept: usize,
}

#[derive(Debug)]
enum Parts<S> {
    One(Part<S>),
    Eight(Box<[Part<S>; PARTS]>),
}

impl<S> Default for Table<S> {
    fn default() -> Self {
        Self { parts: Parts::One(Part::default()), swept: 0 }
    }
}

/// The number of the part that a fingerprint is in.
#[inline]
fn part_of(fingerprint: u64) -> usize {
    (fingerprint >> (u64::BITS - PART_BITS)) as usize
}

impl<S> Table<S> {
    fn parts(&self) -> &[Part<S>] {
        match &self.parts {
            Parts::One(part) => std::slice::from_ref(part),
            Parts::Eight(parts) => &parts[..],
        }
    }

    fn parts_mut(&mut self) -> &mut [Part<S>] {
        match &mut self.parts {
            Parts::One(part) => std::slice::from_mut(part),
            Parts::Eight(parts) => &mut parts[..],
        }
    }

    #[inline]
    pub(in crate::store::memory) fn part(&self, fingerprint: u64) -> &Part<S> {
        match &self.parts {
            Parts::One(part) => part,
            Parts::Eight(parts) => &parts[part_of(fingerprint)],
        }
    }

    #[inline]
    pub(in crate::store::memory) fn part_mut(&mut self, fingerprint: u64) -> &mut Part<S> {
        match &mut self.parts {
            Parts::One(part) => part,
            Parts::Eight(parts) => &mut parts[part_of(fingerprint)],
        }
    }
}

impl<S: Window> Table<S> {
    pub(in crate::store::memory) fn len(&self) -> usize {
        self.parts().iter().map(Part::len).sum()
    }

    /// Bytes of the arrays, as the budget counts them.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        let own = if let Parts::Eight(parts) = &self.parts { size_of_val(&**parts) } else { 0 };
        own + self.parts().iter().map(Part::bytes).sum::<usize>()
    }

    pub(in crate::store::memory) fn get(&self, fingerprint: u64) -> Option<&S> {
        self.part(fingerprint).get(fingerprint)
    }

    #[inline]
    pub(in crate::store::memory) fn get_mut(&mut self, fingerprint: u64) -> Option<&mut S> {
        self.part_mut(fingerprint).get_mut(fingerprint)
    }

    pub(in crate::store::memory) fn remove(&mut self, fingerprint: u64) -> Option<S> {
        self.part_mut(fingerprint).remove(fingerprint)
    }

    /// Inserts the state of a new key, even beyond the budget.
    pub(in crate::store::memory) fn put(&mut self, budget: &Budget, fingerprint: u64, state: S) {
        let part = self.part_mut(fingerprint);
        let before = part.bytes();
        part.put(fingerprint, state);
        budget.settle(before, part.bytes());
    }

    /// Splits a large table into eight parts, if the budget has room for both arrays meanwhile.
    pub(in crate::store::memory) fn split_if_large(&mut self, budget: &Budget) {
        let Parts::One(one) = &self.parts else { return };
        if one.len() < LEN_ONE_MAX {
            return;
        }
        let mut lens = [0; PARTS];
        for (fingerprint, _) in one.iter() {
            lens[part_of(fingerprint)] += 1;
        }
        let arrays = lens.iter().map(|&len| Part::<S>::bytes_with(Part::<S>::homes_for(len)));
        let wanted = size_of::<[Part<S>; PARTS]>() + arrays.sum::<usize>();
        if budget.take(wanted).is_err() {
            return;
        }
        let mut parts: Box<[Part<S>; PARTS]> =
            Box::new(std::array::from_fn(|_| Part::of_common_bits(PART_BITS)));
        for (part, len) in parts.iter_mut().zip(lens) {
            part.rebuild(Part::<S>::homes_for(len), |_| false, |_| unreachable!("nothing is there"));
        }
        let before = self.bytes();
        let Parts::One(one) = std::mem::replace(&mut self.parts, Parts::Eight(parts)) else {
            unreachable!("it was one above")
        };
        for (fingerprint, state) in one.into_iter() {
            self.put(budget, fingerprint, state);
        }
        self.swept = 0;
        budget.give(before);
    }

    /// Converts all states to another type, if the budget has room for both arrays meanwhile; leaves this table empty.
    pub(in crate::store::memory) fn converted<T: Window>(
        &mut self,
        budget: &Budget,
        convert: impl Fn(S) -> T,
    ) -> Option<Table<T>> {
        let arrays = self.parts().iter().map(|part| Part::<T>::bytes_with(Part::<T>::homes_for(part.len())));
        let own = self.bytes() - self.parts().iter().map(Part::bytes).sum::<usize>();
        let wanted = own + arrays.sum::<usize>();
        budget.take(wanted).ok()?;
        let before = self.bytes();
        let (mut heap_before, mut heap_after) = (0, 0);
        let mut convert = |state: S| {
            heap_before += rounded(state.heap_bytes());
            let state = convert(state);
            heap_after += rounded(state.heap_bytes());
            state
        };
        let parts = match std::mem::take(self).parts {
            Parts::One(part) => Parts::One(part.converted(&mut convert)),
            Parts::Eight(parts) => Parts::Eight(Box::new(parts.map(|part| part.converted(&mut convert)))),
        };
        let table = Table { parts, swept: 0 };
        // In one step, so that growing heap memory is covered by the freed array.
        budget.settle(before + wanted + heap_before, table.bytes() + heap_after);
        Some(table)
    }

    /// Shrinks arrays that are mostly empty.
    pub(in crate::store::memory) fn shrink(&mut self, budget: &Budget) {
        let before = self.bytes();
        self.parts_mut().iter_mut().for_each(Part::shrink);
        if self.len() == 0 {
            *self = Self::default();
        }
        budget.settle(before, self.bytes());
    }

    /// Sweeps up to `count` slots from the cursor and drops those that are `gone`; returns whether it reached the end
    /// of the last part.
    pub(in crate::store::memory) fn sweep(
        &mut self,
        count: usize,
        gone: impl Fn(u64, &S) -> bool,
        dropped: impl FnMut(u64, S),
    ) -> bool {
        let swept = self.swept;
        let parts = self.parts_mut();
        let last = parts.len() - 1;
        let part_round = parts[swept].sweep(count, gone, dropped);
        if part_round {
            self.swept = if swept == last { 0 } else { swept + 1 };
        }
        part_round && swept == last
    }

    /// The next sweep begins at the first slot.
    pub(in crate::store::memory) fn restart_sweep(&mut self) {
        self.swept = 0;
        self.parts_mut().iter_mut().for_each(Part::restart_sweep);
    }

    /// All keys, by ascending fingerprint.
    pub(in crate::store::memory) fn iter(&self) -> impl Iterator<Item = (u64, &S)> {
        self.parts().iter().flat_map(Part::iter)
    }

    pub(in crate::store::memory) fn states_mut(&mut self) -> impl Iterator<Item = &mut S> {
        self.parts_mut().iter_mut().flat_map(Part::states_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::FixedWindow;
    use crate::rule::{Algorithm, Decimal, Limit};
    use crate::testing::Rng;

    #[test]
    fn a_table_is_split_keeps_all_its_keys_and_becomes_one_part_again() {
        let limit = Limit::new("1000000/1s".parse().unwrap(), Decimal::ZERO, Algorithm::FixedWindow);
        let (budget, mut rng) = (Budget::new(1 << 20), Rng::new(5));
        let mut table = Table::default();
        let mut keys: Vec<u64> = (0..5_000).map(|_| rng.below(u64::MAX) | 1).collect();
        for &key in &keys {
            let mut state = FixedWindow::default();
            state.charge(&limit, 1, key % 1_000 + 1);
            table.split_if_large(&budget);
            table.put(&budget, key, state);
            assert_eq!(budget.taken(), table.bytes() as u64);
        }
        assert!(matches!(table.parts, Parts::Eight(_)));
        keys.sort_unstable();
        assert!(table.iter().map(|(key, _)| key).eq(keys.iter().copied()), "ascending over all parts");
        for &key in &keys {
            assert_eq!(table.get(key).unwrap().usage(&limit, 1).used, key % 1_000 + 1);
        }
        let mut rounds = 0;
        for (gone, rest) in [(keys[17], 4_999), (keys[4_321], 4_998)] {
            while !table.sweep(64, |key, _| key == gone, |_, _| {}) {
                rounds += 1;
                assert!(rounds < 1_000, "the sweep comes round");
            }
            assert_eq!((table.len(), table.get(gone).is_none()), (rest, true));
        }
        for key in keys {
            table.remove(key);
        }
        table.shrink(&budget);
        assert!(matches!(table.parts, Parts::One(_)));
        assert_eq!((table.len(), table.bytes(), budget.taken()), (0, 0, 0));
    }

    #[test]
    fn a_table_is_not_split_without_room_for_both_arrays() {
        let mut table = Table::<FixedWindow>::default();
        let ample = Budget::new(1 << 20);
        for key in 1..=3_000_u64 {
            table.put(&ample, key << 50, FixedWindow::default());
        }
        let tight = Budget::new(ample.taken() / 2);
        table.split_if_large(&tight);
        assert!(matches!(table.parts, Parts::One(_)) && tight.taken() == 0);
        assert_eq!(table.len(), 3_000);
    }
}
