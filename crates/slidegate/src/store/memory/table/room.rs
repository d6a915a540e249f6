//! Room for keys: slots in tables, and bytes on the heap, within the budget.

use std::sync::atomic::{AtomicU64, Ordering};

use super::any_part::{AnyPart, with_part};
use super::part::Part;
use super::split_table::Table;
use crate::algorithm::Window;
use crate::rule::Limit;
use crate::store::StoreError;
use crate::store::memory::budget::Budget;

/// Slots that are swept when the budget is spent.
const SWEPT_WHEN_FULL: usize = 64;

/// The store-wide context of a call on a shard.
#[derive(Debug, Clone, Copy)]
pub(in crate::store::memory) struct Room<'s> {
    /// The budget of the rule: all of it, or the part of inline rules.
    pub(in crate::store::memory) budget: &'s Budget,
    /// The part of inline rules.
    pub(in crate::store::memory) inline_budget: &'s Budget,
    /// The watermark of time: states that ended by then may be dropped.
    pub(in crate::store::memory) noted_us: u64,
    /// Keys of the same admission: none is evicted for another.
    pub(in crate::store::memory) spared: &'s [u64],
    /// Number of ended keys that were dropped.
    pub(in crate::store::memory) swept: &'s AtomicU64,
}

impl Room<'_> {
    /// The room of an inline rule or of another one.
    pub(in crate::store::memory) fn of_rule(self, is_inline: bool) -> Self {
        if is_inline { Self { budget: self.inline_budget, ..self } } else { self }
    }

    /// Counts an ended key that was dropped, and releases its heap bytes.
    pub(in crate::store::memory) fn drop_ended(&self, heap_bytes: usize) {
        self.budget.give(rounded(heap_bytes));
        self.swept.fetch_add(1, Ordering::Relaxed);
    }
}

/// Heap bytes as the budget counts them: allocators have size classes, and keep freed memory.
#[inline]
pub(in crate::store::memory) fn rounded(heap_bytes: usize) -> usize {
    (heap_bytes + heap_bytes / 4).next_multiple_of(16)
}

/// Inserts a new key; returns its index in its part. Grows the table if needed and the budget allows it.
#[inline(never)]
pub(in crate::store::memory) fn insert(
    table: &mut Table,
    limit: &Limit,
    room: Room<'_>,
    fingerprint: u64,
    drop_ended: bool,
) -> Result<usize, StoreError> {
    let mut drop_ended = drop_ended;
    loop {
        let part = table.part_mut(fingerprint);
        let inserted = with_part!(part, part => part.insert_new(fingerprint));
        if let Some(index) = inserted {
            return Ok(index);
        }
        table.split_if_large(room.budget);
        with_part!(table.part_mut(fingerprint), part => grow(part, limit, room, drop_ended))?;
        // Very rarely the overflow slots are full still: then it has to grow.
        drop_ended = false;
    }
}

/// Makes room for one more key: a larger array or, if the budget does not allow one, dropping ended keys among the
/// next few slots.
#[cold]
fn grow<S: Window>(
    part: &mut Part<S>,
    limit: &Limit,
    room: Room<'_>,
    drop_ended: bool,
) -> Result<(), StoreError> {
    let gone = |state: &S| drop_ended && state.ends_us(limit) <= room.noted_us;
    // Both arrays exist meanwhile. The budget is checked before the keys are counted: at the budget, a flood of new
    // keys must not walk the part for every one of them.
    let (before, after) = (part.bytes(), Part::<S>::bytes_with(part.homes_next()));
    if let Err(full) = room.budget.take(after) {
        let mut dropped = 0;
        part.sweep(
            SWEPT_WHEN_FULL,
            |_, state| gone(state),
            |_, state| {
                dropped += 1;
                room.drop_ended(state.heap_bytes());
            },
        );
        return if dropped > 0 { Ok(()) } else { Err(full) };
    }
    let homes = part.homes_next_without(gone);
    part.rebuild(homes, gone, |state| room.drop_ended(state.heap_bytes()));
    room.budget.settle(before + after, part.bytes());
    Ok(())
}
