//! The memory budget of a store.
//!
//! The count estimates resident memory: arrays count 3/2 of their size and the heap memory of states 5/4, because
//! allocators round sizes up and keep freed memory for a while.
//!
//! Inline rules have a part of the budget, which they may fill; the rest is for configured rules alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

/// Smallest budget: below it a few busy shards would fill it.
pub const BUDGET_BYTES_MIN: u64 = 1 << 20;
/// Default budget: 1 GiB.
pub const BUDGET_BYTES_DEFAULT: u64 = 1 << 30;

/// Inline rules together may take the budget divided by this.
pub(super) const INLINE_SHARE: u64 = 2;

/// Records of void receipts may take the budget divided by this, as evictions make them where keys need the room.
const VOID_SHARE: u64 = 64;

/// A budget of bytes, and how many of them are taken.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    taken: AtomicU64,
    /// What records of void receipts have taken of it.
    taken_by_void: AtomicU64,
    /// The budget of which this is a part.
    whole: Option<Arc<Self>>,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, taken: AtomicU64::new(0), taken_by_void: AtomicU64::new(0), whole: None }
    }

    /// The part of `whole` for inline rules: what is taken of it is taken of the whole too.
    pub(super) fn inline_part_of(whole: &Arc<Self>) -> Self {
        Self { whole: Some(Arc::clone(whole)), ..Self::new(whole.bytes / INLINE_SHARE) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, or none if they do not fit.
    pub(super) fn take(&self, bytes: usize) -> Result<(), StoreError> {
        if bytes == 0 {
            return Ok(());
        }
        let fits = |taken: u64| taken.checked_add(bytes as u64).filter(|&taken| taken <= self.bytes);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        match (taken, &self.whole) {
            (Err(_), None) => Err(StoreError::Full { budget_bytes: self.bytes }),
            (Err(_), Some(_)) => Err(StoreError::InlineFull { share_bytes: self.bytes }),
            (Ok(_), None) => Ok(()),
            (Ok(_), Some(whole)) => whole.take(bytes).inspect_err(|_| {
                self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
            }),
        }
    }

    /// Takes `bytes` for a record of void receipts, or none if they do not fit or such records have their share.
    pub(super) fn take_void(&self, bytes: usize) -> bool {
        let before = self.taken_by_void.fetch_add(bytes as u64, Ordering::Relaxed);
        let fits = before + bytes as u64 <= self.bytes / VOID_SHARE && self.take(bytes).is_ok();
        if !fits {
            self.taken_by_void.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
        fits
    }

    pub(super) fn give_void(&self, bytes: usize) {
        self.taken_by_void.fetch_sub(bytes as u64, Ordering::Relaxed);
        self.give(bytes);
    }

    /// Takes `bytes` even beyond the budget: for changes that must not fail, such as a live change.
    pub(super) fn take_anyway(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.take_anyway(bytes);
        }
    }

    pub(super) fn give(&self, bytes: usize) {
        if bytes > 0 {
            self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
            if let Some(whole) = &self.whole {
                whole.give(bytes);
            }
        }
    }

    /// Replaces `before` taken bytes by `after`.
    pub(super) fn settle(&self, before: usize, after: usize) {
        match after.checked_sub(before) {
            Some(0) => {}
            Some(grown) => self.take_anyway(grown),
            None => self.give(before - after),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_do_not_fit_are_not_taken() {
        let budget = Budget::new(100);
        assert_eq!(budget.take(60), Ok(()));
        assert_eq!(budget.take(41), Err(StoreError::Full { budget_bytes: 100 }));
        assert_eq!(budget.taken(), 60);
        assert_eq!(budget.take(40), Ok(()));
        budget.give(10);
        assert!(budget.take(usize::MAX).is_err(), "sums do not overflow");
        budget.settle(50, 45);
        budget.settle(1, 4);
        assert_eq!(budget.taken(), 88);
    }

    #[test]
    fn inline_rules_cannot_take_the_part_of_the_others() {
        let whole = Arc::new(Budget::new(100));
        let inline = Budget::inline_part_of(&whole);
        assert_eq!(inline.take(40), Ok(()));
        assert_eq!(inline.take(11), Err(StoreError::InlineFull { share_bytes: 50 }));
        assert_eq!(whole.take(55), Ok(()));
        assert_eq!(inline.take(6), Err(StoreError::Full { budget_bytes: 100 }), "the others may take all");
        assert_eq!((inline.taken(), whole.taken()), (40, 95));
        inline.settle(40, 42);
        whole.give(55);
        assert_eq!((inline.taken(), whole.taken()), (42, 42));
        inline.give(42);
        assert_eq!((inline.taken(), whole.taken()), (0, 0));
    }
}
