//! Which receipts a forgotten state leaves behind.

use std::collections::HashMap;

/// Most records, a few kilobytes per shard; beyond, all receipts so far are void.
const RECORDS_MAX: usize = 256;

/// For keys whose state was forgotten before its time (a reset, an eviction, a change of geometry), the
/// order up to which receipts are void. A record is kept until those receipts have expired.
///
/// A state's successor could not tell them apart: windows and buckets have the same numbers, and a clock
/// that stands still gives the same stamps.
#[derive(Debug, Default)]
pub(super) struct VoidReceipts {
    /// Of every key.
    before: u64,
    /// By fingerprint: the order, and when the last receipt expires.
    records: HashMap<u64, (u64, u64)>,
}

impl VoidReceipts {
    /// All receipts up to `order` are void.
    pub(super) fn all_until(order: u64) -> Self {
        Self { before: order, records: HashMap::new() }
    }

    /// Receipts of this key up to `order` are void; the last of them expires at `expires_us`.
    pub(super) fn record(&mut self, fingerprint: u64, order: u64, expires_us: u64) {
        if self.records.len() >= RECORDS_MAX {
            // One-sided: what is not given back was used.
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
    pub(super) fn forget(&mut self, noted_us: u64) {
        if !self.records.is_empty() {
            self.records.retain(|_, (_, expires_us)| *expires_us > noted_us);
            self.records.shrink_to_fit();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_before_is_void() {
        let mut voids = VoidReceipts::all_until(10);
        voids.record(7, 20, 1_000);
        voids.record(7, 25, 900);
        assert!(voids.contains(8, 10) && !voids.contains(8, 11), "all keys until the table began");
        assert!(voids.contains(7, 25) && !voids.contains(7, 26));
        voids.forget(999);
        assert!(voids.contains(7, 25), "the first receipt has not expired");
        voids.forget(1_000);
        assert!(voids.is_empty() && !voids.contains(7, 25));
    }

    #[test]
    fn too_many_records_void_everything_so_far() {
        let mut voids = VoidReceipts::default();
        for fingerprint in 0..RECORDS_MAX as u64 {
            voids.record(fingerprint, fingerprint, u64::MAX);
        }
        assert!(!voids.contains(0, RECORDS_MAX as u64));
        voids.record(u64::MAX, 5_000, u64::MAX);
        assert!(voids.contains(0, 5_000) && !voids.contains(0, 5_001));
    }
}
