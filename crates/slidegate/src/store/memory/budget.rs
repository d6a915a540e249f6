//! The memory budget of a store.
//!
//! The count estimates resident memory: arrays count 3/2 of their size and the heap memory of states 5/4, because
//! allocators round sizes up and keep freed memory for a while.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;

/// Smallest budget: below it a few busy shards would fill it.
pub const BUDGET_BYTES_MIN: u64 = 1 << 20;
/// Default budget: 1 GiB.
pub const BUDGET_BYTES_DEFAULT: u64 = 1 << 30;

/// A budget of bytes, and how many of them are taken.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    taken: AtomicU64,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, taken: AtomicU64::new(0) }
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
        taken.map(|_| ()).map_err(|_| StoreError::Full { budget_bytes: self.bytes })
    }

    /// Takes `bytes` even beyond the budget: for changes that must not fail, such as a live change.
    pub(super) fn take_anyway(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn give(&self, bytes: usize) {
        if bytes > 0 {
            self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
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
}
