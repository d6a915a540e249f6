//! A window number and two counts in 16 bytes.
#![expect(clippy::inline_always, reason = "passed through memory, packing takes longer than the decision")]

use std::num::NonZeroU64;

/// Bits of the window's number: windows of 1 ms are numbered below 2^48 until the year 9999.
const NUMBER_BITS: u32 = 48;
/// Bits of a count: 5 x 10^11. Larger counts go to the heap.
pub(super) const COUNT_BITS: u32 = 39;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Always set, so that the high half is never zero.
const MARK: u64 = 1 << 63;

/// What `sliding-counter` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) number: u64,
    pub(super) previous: u64,
    pub(super) current: u64,
}

/// [`Counts`] in 16 bytes where they fit: for all but the largest limits.
///
/// The high half in place is never zero: the compiler's niche for the heap variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PackedCounts {
    InPlace(NonZeroU64, u64),
    OnHeap(Box<Counts>),
}

impl Default for PackedCounts {
    fn default() -> Self {
        Self::of(Counts::default())
    }
}

impl PackedCounts {
    #[inline(always)]
    pub(super) fn of(counts: Counts) -> Self {
        let Counts { number, previous, current } = counts;
        debug_assert!(number < 1 << NUMBER_BITS, "a window after the year 9999");
        if (previous | current) >> COUNT_BITS != 0 {
            return Self::OnHeap(Box::new(counts));
        }
        // mark 1 | number 48 | previous, high part 15 ... previous, low part 24 | free 1 | current 39
        let high = MARK | number << 15 | previous >> 24;
        let high = NonZeroU64::new(high).expect("it is marked");
        Self::InPlace(high, previous << 40 | current)
    }

    #[inline(always)]
    pub(super) fn get(&self) -> Counts {
        match self {
            Self::InPlace(high, low) => Counts {
                number: (high.get() & !MARK) >> 15,
                previous: (high.get() & 0x7FFF) << 24 | low >> 40,
                current: low & COUNT_MASK,
            },
            Self::OnHeap(counts) => **counts,
        }
    }

    /// The counts; `None` if they are on the heap.
    #[inline(always)]
    pub(super) fn in_place(&self) -> Option<Counts> {
        matches!(self, Self::InPlace(..)).then(|| self.get())
    }

    #[inline(always)]
    pub(super) fn set(&mut self, counts: Counts) {
        *self = Self::of(counts);
    }

    /// Adds to the current count; false, and nothing changes, if the counts are on the heap or the sum does not fit.
    #[inline(always)]
    pub(super) fn add(&mut self, units: u64) -> bool {
        let Self::InPlace(_, low) = self else { return false };
        let fits = (*low & COUNT_MASK) + units <= COUNT_MASK;
        if fits {
            *low += units;
        }
        fits
    }

    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::InPlace(..) => 0,
            Self::OnHeap(_) => size_of::<Counts>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::USED_MAX;
    use crate::time::TIME_MAX_US;

    #[test]
    fn counts_round_trip_through_sixteen_bytes() {
        assert_eq!(size_of::<PackedCounts>(), 16);
        for number in [0, 1, 29_083_335, TIME_MAX_US / 1_000] {
            for previous in [0, 1, 0xFF_FFFF, 1 << 24, (1 << 39) - 1, 1 << 39, USED_MAX] {
                for current in [0, 1, (1 << 39) - 1, 1 << 39, 1_000_000_000_000, USED_MAX] {
                    let counts = Counts { number, previous, current };
                    let packed = PackedCounts::of(counts);
                    assert_eq!(packed.get(), counts);
                    let fits = previous < 1 << 39 && current < 1 << 39;
                    assert_eq!(packed.heap_bytes(), if fits { 0 } else { 24 }, "{counts:?}");
                }
            }
        }
    }
}
