//! States by fingerprint: one part while there are few keys, split into eight when there are many.
//!
//! A part grows by moving to a larger array, so it must stay small: with ten million keys in a store of 256 shards a
//! part has five thousand, and growing usually takes 0.2 ms; an allocator that returns pages to the system in the same
//! call can make it milliseconds. Rejected: more shards, whose locks and rules exceed the nearer caches; and growing in
//! place with an array in chunks, which was no faster.

use super::any_part::{AnyPart, PartState, with_part};
use super::part::Part;
use crate::rule::Algorithm;
use crate::store::memory::budget::Budget;

/// High bits of a fingerprint that choose its part.
const PART_BITS: u32 = 3;
const PARTS: usize = 1 << PART_BITS;
/// Most keys of a table with one part: few enough to be moved at once.
const LEN_ONE_MAX: usize = 2_048;

/// States by fingerprint.
#[derive(Debug)]
pub(in crate::store::memory) struct Table {
    parts: Parts,
    /// The part that is swept next.
    swept: usize,
}

#[derive(Debug)]
enum Parts {
    One(AnyPart),
    Eight(Box<EightParts>),
}

/// Each part in a cache line of its own: finding a slot reads one line before the slot.
#[derive(Debug)]
#[repr(align(64))]
struct EightParts([AnyPart; PARTS]);

const _: () = assert!(size_of::<AnyPart>() == 64, "a part takes one cache line");

/// The end of a part that a sweep reached.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::memory) struct PartEnd {
    part: usize,
    /// Whether it is the last part of the table.
    pub(in crate::store::memory) last: bool,
}

/// The number of the part that a fingerprint is in.
#[inline]
fn part_of(fingerprint: u64) -> usize {
    (fingerprint >> (u64::BITS - PART_BITS)) as usize
}

impl Table {
    /// An empty table.
    pub(in crate::store::memory) fn new(algorithm: Algorithm) -> Self {
        Self { parts: Parts::One(AnyPart::new(algorithm)), swept: 0 }
    }

    /// All parts, by ascending fingerprint.
    pub(in crate::store::memory) fn parts(&self) -> &[AnyPart] {
        match &self.parts {
            Parts::One(part) => std::slice::from_ref(part),
            Parts::Eight(parts) => &parts.0,
        }
    }

    pub(in crate::store::memory) fn parts_mut(&mut self) -> &mut [AnyPart] {
        match &mut self.parts {
            Parts::One(part) => std::slice::from_mut(part),
            Parts::Eight(parts) => &mut parts.0,
        }
    }

    #[inline]
    pub(in crate::store::memory) fn part(&self, fingerprint: u64) -> &AnyPart {
        match &self.parts {
            Parts::One(part) => part,
            Parts::Eight(parts) => &parts.0[part_of(fingerprint)],
        }
    }

    #[inline]
    pub(in crate::store::memory) fn part_mut(&mut self, fingerprint: u64) -> &mut AnyPart {
        match &mut self.parts {
            Parts::One(part) => part,
            Parts::Eight(parts) => &mut parts.0[part_of(fingerprint)],
        }
    }

    pub(in crate::store::memory) fn len(&self) -> usize {
        self.parts().iter().map(AnyPart::len).sum()
    }

    /// Bytes of the arrays, as the budget counts them.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        let own = if let Parts::Eight(parts) = &self.parts { size_of_val(&**parts) } else { 0 };
        own + self.parts().iter().map(AnyPart::bytes).sum::<usize>()
    }

    /// Splits a large table into eight parts, if the budget has room for both arrays meanwhile.
    pub(in crate::store::memory) fn split_if_large(&mut self, budget: &Budget) {
        let Parts::One(one) = &mut self.parts else { return };
        if one.len() < LEN_ONE_MAX {
            return;
        }
        if let Some(parts) = with_part!(one, part => split(part, budget)) {
            *self = Self { parts: Parts::Eight(parts), swept: 0 };
        }
    }

    /// Sweeps the next part with `sweep`, which returns whether it reached the end of the part.
    pub(in crate::store::memory) fn sweep(
        &mut self,
        sweep: impl FnOnce(&mut AnyPart) -> bool,
    ) -> Option<PartEnd> {
        let part = self.swept;
        let parts = self.parts_mut();
        let last = part == parts.len() - 1;
        let ended = sweep(&mut parts[part]);
        if ended {
            self.swept = if last { 0 } else { part + 1 };
        }
        ended.then_some(PartEnd { part, last })
    }

    /// The next sweep begins at the first slot.
    pub(in crate::store::memory) fn restart_sweep(&mut self) {
        self.swept = 0;
        for part in self.parts_mut() {
            with_part!(part, part => part.restart_sweep());
        }
    }

    /// Shrinks the array of a part if most of it is empty, and changes its slot width if needed.
    pub(in crate::store::memory) fn tidy(&mut self, budget: &Budget, end: PartEnd) {
        let before = self.bytes();
        if self.len() == 0 {
            *self = Self { parts: Parts::One(self.parts()[0].emptied()), swept: 0 };
            budget.give(before);
            return;
        }
        // The tables of several limits may have been split at different times.
        let index = end.part % self.parts().len();
        with_part!(&mut self.parts_mut()[index], part => part.shrink());
        budget.settle(before, self.bytes());
        self.parts_mut()[index].refit(budget);
    }
}

/// The keys of a part in eight parts; leaves it empty. `None`, without any change, if the budget has no room for both
/// arrays.
fn split<S: PartState>(one: &mut Part<S>, budget: &Budget) -> Option<Box<EightParts>> {
    let mut lens = [0; PARTS];
    for (fingerprint, _) in one.iter() {
        lens[part_of(fingerprint)] += 1;
    }
    let arrays = lens.iter().map(|&len| Part::<S>::bytes_with(Part::<S>::homes_for(len)));
    let wanted = size_of::<EightParts>() + arrays.sum::<usize>();
    budget.take(wanted).ok()?;
    let before = one.bytes();
    let mut parts: [Part<S>; PARTS] = std::array::from_fn(|_| Part::of_common_bits(PART_BITS));
    for (part, len) in parts.iter_mut().zip(lens) {
        part.rebuild(Part::<S>::homes_for(len), |_| false, |_| unreachable!("nothing is there"));
    }
    for (fingerprint, state) in one.take().into_iter() {
        parts[part_of(fingerprint)].put(fingerprint, state);
    }
    let after = size_of::<EightParts>() + parts.iter().map(Part::bytes).sum::<usize>();
    budget.settle(before + wanted, after);
    Some(Box::new(EightParts(parts.map(S::wrap))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{FixedWindow, SlidingLog, Window};
    use crate::rule::{Decimal, Limit};
    use crate::testing::Rng;

    fn limit(algorithm: Algorithm) -> Limit {
        Limit::new("1000000/1s".parse().unwrap(), Decimal::ZERO, algorithm)
    }

    fn put<S: PartState>(table: &mut Table, budget: &Budget, key: u64, state: S) {
        table.split_if_large(budget);
        let part = S::part_in(table.part_mut(key)).unwrap();
        let before = part.bytes();
        part.put(key, state);
        budget.settle(before, part.bytes());
    }

    fn get(table: &mut Table, key: u64) -> Option<&FixedWindow> {
        FixedWindow::part_in(table.part_mut(key)).unwrap().get(key)
    }

    /// Sweeps the whole table and drops one key.
    fn drop_key(table: &mut Table, gone: u64) {
        for _ in 0..1_000 {
            let end =
                table.sweep(|part| with_part!(part, part => part.sweep(64, |key, _| key == gone, |_, _| {})));
            if end.is_some_and(|end| end.last) {
                return;
            }
        }
        panic!("the sweep does not reach the end");
    }

    #[test]
    fn a_table_is_split_keeps_all_its_keys_and_becomes_one_part_again() {
        let limit = limit(Algorithm::FixedWindow);
        let (budget, mut rng) = (Budget::new(1 << 20), Rng::new(5));
        let mut table = Table::new(Algorithm::FixedWindow);
        let mut keys: Vec<u64> = (0..5_000).map(|_| rng.below(u64::MAX) | 1).collect();
        for &key in &keys {
            let mut state = FixedWindow::default();
            state.charge(&limit, 1, key % 1_000 + 1);
            put(&mut table, &budget, key, state);
            assert_eq!(budget.taken(), table.bytes() as u64);
        }
        assert!(matches!(table.parts, Parts::Eight(_)));
        keys.sort_unstable();
        let mut ascending = keys.iter();
        for part in table.parts() {
            with_part!(part, part => part.iter().for_each(|(key, _)| assert_eq!(Some(&key), ascending.next())));
        }
        for &key in &keys {
            assert_eq!(get(&mut table, key).unwrap().usage(&limit, 1).used, key % 1_000 + 1);
        }
        for (gone, rest) in [(keys[17], 4_999), (keys[4_321], 4_998)] {
            drop_key(&mut table, gone);
            assert_eq!((table.len(), get(&mut table, gone).is_none()), (rest, true));
        }
        for key in keys {
            with_part!(table.part_mut(key), part => drop(part.remove(key)));
        }
        table.tidy(&budget, PartEnd { part: 3, last: false });
        assert!(matches!(table.parts, Parts::One(AnyPart::FixedWindow(_))));
        assert_eq!((table.len(), table.bytes(), budget.taken()), (0, 0, 0));
    }

    #[test]
    fn a_table_is_not_split_without_room_for_both_arrays() {
        let mut table = Table::new(Algorithm::FixedWindow);
        let ample = Budget::new(1 << 20);
        for key in 1..=3_000_u64 {
            let part = FixedWindow::part_in(table.part_mut(key)).unwrap();
            part.put(key << 50, FixedWindow::default());
        }
        ample.take_anyway(table.bytes());
        let tight = Budget::new(ample.taken() / 2);
        table.split_if_large(&tight);
        assert!(matches!(table.parts, Parts::One(_)) && tight.taken() == 0);
        assert_eq!(table.len(), 3_000);
    }

    /// A call that moves all keys of a large table takes milliseconds.
    #[test]
    fn the_slot_width_changes_one_part_at_a_time() {
        let limit = limit(Algorithm::SlidingLog);
        let (budget, mut rng) = (Budget::new(1 << 30), Rng::new(5));
        let mut table = Table::new(Algorithm::SlidingLog);
        for _ in 0..5_000 {
            let mut log = SlidingLog::default();
            (1..=10).for_each(|second| _ = log.charge(&limit, second * 1_000, 1));
            let log: crate::algorithm::NarrowLog = log.refitted();
            budget.take_anyway(super::super::room::rounded(log.heap_bytes()));
            put(&mut table, &budget, rng.below(u64::MAX) | 1, log);
        }
        let wide = |table: &Table| {
            table.parts().iter().filter(|part| matches!(part, AnyPart::SlidingLog(_))).count()
        };
        for part in 0..PARTS {
            assert_eq!((wide(&table), table.len()), (part, 5_000));
            table.tidy(&budget, PartEnd { part, last: part + 1 == PARTS });
        }
        assert_eq!((wide(&table), table.len()), (PARTS, 5_000));
        assert_eq!(budget.taken(), table.bytes() as u64, "nothing is on the heap");
    }
}
