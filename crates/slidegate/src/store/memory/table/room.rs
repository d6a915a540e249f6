//! Room for keys: places in tables, and bytes on the heap, within the budget.

use std::sync::atomic::{AtomicU64, Ordering};

use super::part::Part;
use super::split_table::Table;
use crate::algorithm::Window;
use crate::rule::Limit;
use crate::store::StoreError;
use crate::store::memory::budget::Budget;

/// Slots looked at for something to drop when the budget is spent.
const SWEPT_WHEN_FULL: usize = 64;

/// What a call may use of the store beyond the shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::memory) struct Room<'s> {
    pub(in crate::store::memory) budget: &'s Budget,
    /// Time has reached this for sure: what ended by then may be forgotten.
    pub(in crate::store::memory) noted_us: u64,
    /// Keys of an admission over several: none may have to make room for another.
    pub(in crate::store::memory) spared: &'s [u64],
    /// How many keys were forgotten because they had ended.
    pub(in crate::store::memory) swept: &'s AtomicU64,
}

impl Room<'_> {
    /// A key that had ended is forgotten, with so many bytes on the heap.
    pub(in crate::store::memory) fn forgot(&self, heap_bytes: usize) {
        self.budget.give(rounded(heap_bytes));
        self.swept.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes on the heap as the budget counts them: allocators have a few sizes only, and hold some back.
#[inline]
pub(in crate::store::memory) fn rounded(heap_bytes: usize) -> usize {
    (heap_bytes + heap_bytes / 4).next_multiple_of(16)
}

/// Puts in a key that is not there, and says where in its part; the table grows if it must and may.
#[inline(never)]
pub(in crate::store::memory) fn insert<S: Window>(
    table: &mut Table<S>,
    limit: &Limit,
    room: Room<'_>,
    fingerprint: u64,
    drop_ended: bool,
) -> Result<usize, StoreError> {
    let mut drop_ended = drop_ended;
    loop {
        if let Ok(index) = table.part_mut(fingerprint).insert(fingerprint, S::default()) {
            return Ok(index);
        }
        table.split_if_large(room.budget);
        grow(table.part_mut(fingerprint), limit, room, drop_ended)?;
        // Hardly ever it is the slots behind the last home that are missing still: then it has to grow.
        drop_ended = false;
    }
}

/// Makes room for one more key: by a larger array or, where the budget does not allow one, by dropping what
/// has ended among the next few slots.
#[cold]
fn grow<S: Window>(
    part: &mut Part<S>,
    limit: &Limit,
    room: Room<'_>,
    drop_ended: bool,
) -> Result<(), StoreError> {
    let gone = |state: &S| drop_ended && state.ends_us(limit) <= room.noted_us;
    // The old and the new array stand side by side for a moment. Whether they may is asked before the keys
    // are counted: a flood of new keys at the budget must not make every one of them walk the part.
    let (before, after) = (part.bytes(), Part::<S>::bytes_with(part.homes_next()));
    if let Err(full) = room.budget.take(after) {
        let mut dropped = 0;
        part.sweep(
            SWEPT_WHEN_FULL,
            |_, state| gone(state),
            |_, state| {
                dropped += 1;
                room.forgot(state.heap_bytes());
            },
        );
        return if dropped > 0 { Ok(()) } else { Err(full) };
    }
    let homes = part.homes_next_without(gone);
    part.rebuild(homes, gone, |state| room.forgot(state.heap_bytes()));
    room.budget.settle(before + after, part.bytes());
    Ok(())
}
