//! Where the slots of a rule are, to prefetch those of a batch before its first shard is locked.
//!
//! A locked instruction, as in taking and releasing a mutex, waits for all earlier loads, so the cache misses of two
//! decisions do not overlap. A prefetch is not waited for once its page is known. The addresses come from a small table
//! that is read without a lock. Each decision of a batch corrects its entry, so an entry is wrong only until the next
//! batch; a prefetch of a wrong address is only useless.
//!
//! Rejected: computing the addresses under the locks, which takes every lock twice (a quarter slower); and the same for a
//! single charge, where waiting for the page of the prefetch takes as long as it gains.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// One per part of every shard.
const HINTS: usize = 2_048;

/// The array of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotArray {
    pub(super) address: usize,
    pub(super) homes: usize,
    pub(super) slot_bytes: usize,
    /// Number of high bits that all fingerprints of the part have in common.
    pub(super) common_bits: u32,
}

/// The last known arrays.
#[derive(Debug)]
pub(super) struct SlotHints(Box<[SlotHint]>);

#[derive(Debug, Default)]
pub(super) struct SlotHint {
    address: AtomicUsize,
    /// The number of homes and, above them, the bytes of a slot and the common bits.
    extent: AtomicU64,
}

const HOMES_BITS: u32 = 40;
const SLOT_BYTES_BITS: u32 = 16;

impl SlotHints {
    pub(super) fn new() -> Self {
        Self((0..HINTS).map(|_| SlotHint::default()).collect())
    }

    /// The hint for a fingerprint of a rule. Rules may share hints.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
    pub(super) fn get(&self, rule_id: u64, fingerprint: u64) -> &SlotHint {
        // The high bits of a fingerprint choose the part, the low ones the shard.
        let index = fingerprint.rotate_left(3) ^ rule_id.wrapping_mul(8);
        &self.0[index as usize % HINTS]
    }
}

impl SlotHint {
    /// Prefetches the slot that is the home of a fingerprint.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an offset into an array fits")]
    pub(super) fn prefetch(&self, fingerprint: u64) {
        let SlotArray { address, homes, slot_bytes, common_bits } = self.array();
        let home = (u128::from(fingerprint << common_bits) * homes as u128) >> u64::BITS;
        prefetch(address.wrapping_add(home as usize * slot_bytes));
    }

    /// The array as last known. While another thread corrects the hint, parts of it may be outdated.
    #[inline]
    fn array(&self) -> SlotArray {
        let extent = self.extent.load(Ordering::Relaxed);
        SlotArray {
            address: self.address.load(Ordering::Relaxed),
            homes: (extent % (1 << HOMES_BITS)) as usize,
            slot_bytes: (extent >> HOMES_BITS) as usize % (1 << SLOT_BYTES_BITS),
            common_bits: (extent >> (HOMES_BITS + SLOT_BYTES_BITS)) as u32,
        }
    }

    /// Corrects the hint.
    #[inline]
    pub(super) fn update(&self, array: SlotArray) {
        // An array that grows or shrinks moves.
        if self.address.load(Ordering::Relaxed) != array.address {
            self.replace(array);
        }
    }

    #[cold]
    fn replace(&self, array: SlotArray) {
        let SlotArray { homes, slot_bytes, common_bits, .. } = array;
        let slot = u64::from(common_bits) << SLOT_BYTES_BITS | slot_bytes as u64;
        let extent = slot << HOMES_BITS | homes as u64;
        self.extent.store(extent, Ordering::Relaxed);
        self.address.store(array.address, Ordering::Relaxed);
    }
}

/// Prefetches a slot: the cache line at the address and, if the slot or the one behind it crosses lines, the next one.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "there is no safe prefetch")]
#[inline]
pub(super) fn prefetch(address: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    use std::ptr::without_provenance;
    /// The last byte of two of the smallest slots, and beyond that of most others.
    const LAST_BYTE: usize = 47;
    // SAFETY: a prefetch neither reads nor writes its address, and ignores one that is not mapped.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(without_provenance(address));
        _mm_prefetch::<_MM_HINT_T0>(without_provenance(address.wrapping_add(LAST_BYTE)));
    }
}

/// Other processors do not prefetch.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
pub(super) fn prefetch(_address: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_corrected_when_the_array_has_moved() {
        let (hints, fingerprint) = (SlotHints::new(), 0xa5 << 56 | 7);
        let hint = hints.get(3, fingerprint);
        for (address, homes, slot_bytes, common_bits) in [(1 << 20, 4_096, 24, 0), (1 << 21, 1 << 39, 64, 3)]
        {
            let array = SlotArray { address, homes, slot_bytes, common_bits };
            hint.update(array);
            assert_eq!(hints.get(3, fingerprint).array(), array);
        }
    }

    #[test]
    fn parts_and_shards_of_a_rule_have_hints_of_their_own() {
        let hints = SlotHints::new();
        let parts_and_shards = (0..8).flat_map(|part| (0..256).map(move |shard| part << 61 | shard));
        let addresses = parts_and_shards.map(|print| std::ptr::from_ref(hints.get(5, print)).addr());
        assert_eq!(addresses.collect::<std::collections::BTreeSet<_>>().len(), HINTS);
    }
}
