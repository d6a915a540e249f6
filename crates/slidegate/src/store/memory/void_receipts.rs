//! Receipts that are void because their state was dropped early.

use std::collections::HashMap;

use super::budget::Budget;

/// Most records, a few kilobytes per table; beyond that all receipts so far are void.
const RECORDS_MAX: usize = 256;
/// A record in the budget's count, with room for the map to grow.
const RECORD_BYTES: usize = 64;

/// For keys whose state was dropped early (a reset, an eviction, a change of geometry), the sequence number
/// up to which receipts are void. A record is kept until those receipts have expired.
///
/// A new state of the key could not tell them apart: windows and buckets have the same numbers, and a clock
/// that stands still gives the same stamps.
#[derive(Debug, Default)]
pub(super) struct VoidReceipts {
    /// The sequence number for all keys.
    before: u64,
    /// By fingerprint: the sequence number, and when the last receipt expires.
    records: HashMap<u64, (u64, u64)>,
}

impl VoidReceipts {
    /// All receipts up to `order` are void.
    pub(super) fn all_until(order: u64) -> Self {
        Self { before: order, records: HashMap::new() }
    }

    /// Receipts of this key up to `order` are void; the last of them expires at `expires_us`.
    pub(super) fn record(&mut self, budget: &Budget, fingerprint: u64, order: u64, expires_us: u64) {
        let is_new = !self.records.contains_key(&fingerprint);
        if is_new && (self.records.len() >= RECORDS_MAX || !budget.take_void(RECORD_BYTES)) {
            // One-sided: a refund that is refused cannot exceed the limit.
            budget.give_void(self.bytes());
            *self = Self::all_until(order);
            return;
        }
        let record = self.records.entry(fingerprint).or_default();
        *record = (order, expires_us.max(record.1));
    }

    pub(super) fn contains(&self, fingerprint: u64, order: u64) -> bool {
        order <= self.before || self.records.get(&fingerprint).is_some_and(|&(until, _)| order <= until)
    }

    /// Drops records whose receipts have expired.
    pub(super) fn drop_expired(&mut self, budget: &Budget, noted_us: u64) {
        if !self.records.is_empty() {
            let before = self.bytes();
            self.records.retain(|_, (_, expires_us)| *expires_us > noted_us);
            self.records.shrink_to_fit();
            budget.give_void(before - self.bytes());
        }
    }

    /// Its bytes, as the budget counts them.
    pub(super) fn bytes(&self) -> usize {
        self.records.len() * RECORD_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_earlier_receipts_are_void() {
        let (mut receipts, budget) = (VoidReceipts::all_until(10), Budget::new(1 << 20));
        receipts.record(&budget, 7, 20, 1_000);
        receipts.record(&budget, 7, 25, 900);
        assert_eq!(budget.taken(), RECORD_BYTES as u64);
        assert!(receipts.contains(8, 10) && !receipts.contains(8, 11), "all keys until the table began");
        assert!(receipts.contains(7, 25) && !receipts.contains(7, 26));
        receipts.drop_expired(&budget, 999);
        assert!(receipts.contains(7, 25), "the first receipt has not expired");
        receipts.drop_expired(&budget, 1_000);
        assert!(receipts.is_empty() && !receipts.contains(7, 25));
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn too_many_records_void_everything_so_far() {
        let (mut receipts, budget) = (VoidReceipts::default(), Budget::new(1 << 20));
        for fingerprint in 0..RECORDS_MAX as u64 {
            receipts.record(&budget, fingerprint, fingerprint, u64::MAX);
        }
        assert!(!receipts.contains(0, RECORDS_MAX as u64));
        receipts.record(&budget, u64::MAX, 5_000, u64::MAX);
        assert!(receipts.contains(0, 5_000) && !receipts.contains(0, 5_001));
        assert_eq!(budget.taken(), 0);
    }

    #[test]
    fn without_memory_for_a_record_everything_so_far_is_void() {
        let (mut receipts, budget) = (VoidReceipts::default(), Budget::new(64 * RECORD_BYTES as u64));
        receipts.record(&budget, 7, 20, 1_000);
        assert!(!receipts.contains(8, 20));
        receipts.record(&budget, 8, 30, 1_000);
        assert!(receipts.contains(9, 30) && receipts.is_empty());
        assert_eq!(budget.taken(), 0);
    }
}
