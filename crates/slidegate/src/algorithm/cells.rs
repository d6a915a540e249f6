//! An array of counters of the narrowest width that holds the limit, with its sum.

/// Bits of the field that holds the sum; the two bits above it hold the width.
const SUM_BITS: u32 = 62;

/// A fixed number of counters, all of 1, 2, 4 or 8 bytes, with their running sum. A large value widens all counters.
///
/// Bytes, not an enum over four kinds of slices: every key has such an array, and the width fits beside the sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cells {
    bytes: Box<[u8]>,
    sum_and_width: u64,
}

impl Cells {
    /// `len` counters at zero that can count to `value_max`.
    pub(super) fn zeros(len: usize, value_max: u64) -> Self {
        let log2 = width_log2(value_max);
        Self { bytes: vec![0; len << log2].into(), sum_and_width: u64::from(log2) << SUM_BITS }
    }

    /// Bytes of `len` counters that can count to `value_max`.
    pub(super) fn bytes_for(len: usize, value_max: u64) -> usize {
        len << width_log2(value_max)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() >> self.log2()
    }

    /// All counters together.
    pub(super) fn sum(&self) -> u64 {
        self.sum_and_width & ((1 << SUM_BITS) - 1)
    }

    pub(super) fn get(&self, index: usize) -> u64 {
        // A copy of a length that the compiler knows is one instruction: a refusal reads many counters.
        match self.log2() {
            0 => u64::from(self.bytes[index]),
            1 => u64::from(u16::from_le_bytes(self.bytes_at(index))),
            2 => u64::from(u32::from_le_bytes(self.bytes_at(index))),
            _ => u64::from_le_bytes(self.bytes_at(index)),
        }
    }

    fn bytes_at<const WIDTH: usize>(&self, index: usize) -> [u8; WIDTH] {
        *self.bytes[index * WIDTH..].first_chunk().expect("the index of a counter")
    }

    pub(super) fn set(&mut self, index: usize, value: u64) {
        if width_log2(value) > self.log2() {
            let mut wider = Self::zeros(self.len(), value);
            (0..self.len()).for_each(|index| wider.set(index, self.get(index)));
            *self = wider;
        }
        self.sum_and_width = self.sum_and_width - self.get(index) + value;
        let width = 1 << self.log2();
        self.bytes[index * width..(index + 1) * width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
        self.sum_and_width -= self.sum();
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that widening allocates to hold `value`, before the narrow counters are freed; 0 if `value` fits.
    pub(super) fn widening_bytes(&self, value: u64) -> usize {
        if width_log2(value) > self.log2() { Self::bytes_for(self.len(), value) } else { 0 }
    }

    fn log2(&self) -> u32 {
        u32::from((self.sum_and_width >> SUM_BITS) as u8)
    }
}

/// The base-2 logarithm of the narrowest width in bytes that holds `value`.
fn width_log2(value: u64) -> u32 {
    match value {
        0..=0xFF => 0,
        0x100..=0xFFFF => 1,
        0x1_0000..=0xFFFF_FFFF => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_the_narrowest_that_holds_the_limit() {
        for (value_max, bytes) in [
            (1, 1),
            (255, 1),
            (256, 2),
            (65_535, 2),
            (65_536, 4),
            (u64::from(u32::MAX), 4),
            (1_000_000_000_000, 8),
        ] {
            assert_eq!(Cells::zeros(61, value_max).heap_bytes(), 61 * bytes, "{value_max}");
            assert_eq!(Cells::bytes_for(61, value_max), 61 * bytes, "{value_max}");
            assert_eq!(Cells::zeros(61, value_max).len(), 61, "{value_max}");
        }
        assert_eq!(size_of::<Cells>(), 24);
    }

    #[test]
    fn a_value_that_is_too_large_widens_all_counters_and_keeps_their_values() {
        let mut cells = Cells::zeros(3, 10);
        cells.set(0, 255);
        assert_eq!((cells.widening_bytes(255), cells.widening_bytes(70_000)), (0, 12));
        cells.set(1, 70_000);
        assert_eq!([0, 1, 2].map(|index| cells.get(index)), [255, 70_000, 0]);
        cells.set(2, 1 << 40);
        assert_eq!([0, 1, 2].map(|index| cells.get(index)), [255, 70_000, 1 << 40]);
        cells.set(0, 5);
        assert_eq!(cells.sum(), 5 + 70_000 + (1 << 40));
        cells.clear();
        assert_eq!((cells.get(2), cells.sum(), cells.len()), (0, 0, 3));
    }
}
