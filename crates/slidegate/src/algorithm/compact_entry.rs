//! One entry of a `compact-log` in 12 bytes.

use super::window::USED_MAX;

/// Bits of a stamp: 2^46 us are 814 days, twice the longest window, so that a stamp is known from its
/// last bits and the newest stamp of its log.
const STAMP_BITS: u32 = 46;
const STAMP_MASK: u64 = (1 << STAMP_BITS) - 1;
const MERGED_BIT: u128 = 1 << STAMP_BITS;
const UNITS_SHIFT: u32 = STAMP_BITS + 1;

/// A stamp, its units, and whether it was merged from more than one stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    words: [u32; 3],
}

impl Entry {
    pub(super) fn new(stamp: u64, units: u64, merged: bool) -> Self {
        debug_assert!(units <= USED_MAX, "USED_MAX fits 49 bits");
        let mark = if merged { MERGED_BIT } else { 0 };
        let bits = u128::from(stamp & STAMP_MASK) | mark | u128::from(units) << UNITS_SHIFT;
        #[expect(clippy::cast_possible_truncation, reason = "cut into words of 32 bits on purpose")]
        let words = [bits as u32, (bits >> 32) as u32, (bits >> 64) as u32];
        Self { words }
    }

    fn bits(self) -> u128 {
        let [low, middle, high] = self.words.map(u128::from);
        low | middle << 32 | high << 64
    }

    /// The stamp, given a stamp of the same log that is not earlier and less than 814 days later.
    #[expect(clippy::cast_possible_truncation, reason = "the stamp is in the low bits")]
    pub(super) fn stamp(self, newest: u64) -> u64 {
        newest - (newest.wrapping_sub(self.bits() as u64) & STAMP_MASK)
    }

    #[expect(clippy::cast_possible_truncation, reason = "49 bits are left")]
    pub(super) fn units(self) -> u64 {
        (self.bits() >> UNITS_SHIFT) as u64
    }

    pub(super) fn merged(self) -> bool {
        self.bits() & MERGED_BIT != 0
    }

    pub(super) fn with_units(self, newest: u64, units: u64) -> Self {
        Self::new(self.stamp(newest), units, self.merged())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_twelve_bytes_round_trips() {
        assert_eq!(size_of::<Entry>(), 12);
        let days_400_us = 400 * 86_400_000_000;
        for newest in [days_400_us, 1_745_000_145_000_000, 253_402_300_799_999_999] {
            for age_us in [0, 1, 60_000_000, days_400_us] {
                for units in [1, 2, 1 << 31, 1_000_000_000_000, USED_MAX] {
                    for merged in [false, true] {
                        let entry = Entry::new(newest - age_us, units, merged);
                        assert_eq!(entry.stamp(newest), newest - age_us);
                        assert_eq!((entry.units(), entry.merged()), (units, merged));
                    }
                }
            }
        }
    }
}
