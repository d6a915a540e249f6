//! Counters of the narrowest width that holds the limit.

/// A fixed number of counters, all of one width. It starts narrow and widens when a value needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cells {
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
    U64(Box<[u64]>),
}

/// Runs the same expression on the counters of whichever width.
macro_rules! with_cells {
    ($cells:expr, $values:ident => $result:expr) => {
        match $cells {
            Cells::U8($values) => $result,
            Cells::U16($values) => $result,
            Cells::U32($values) => $result,
            Cells::U64($values) => $result,
        }
    };
}

impl Default for Cells {
    fn default() -> Self {
        Self::U8(Box::default())
    }
}

impl Cells {
    /// `len` counters at zero that can count to `value_max`.
    pub(super) fn zeros(len: usize, value_max: u64) -> Self {
        if u8::try_from(value_max).is_ok() {
            Self::U8(vec![0; len].into())
        } else if u16::try_from(value_max).is_ok() {
            Self::U16(vec![0; len].into())
        } else if u32::try_from(value_max).is_ok() {
            Self::U32(vec![0; len].into())
        } else {
            Self::U64(vec![0; len].into())
        }
    }

    pub(super) fn len(&self) -> usize {
        with_cells!(self, values => values.len())
    }

    pub(super) fn get(&self, index: usize) -> u64 {
        match self {
            Self::U8(values) => values[index].into(),
            Self::U16(values) => values[index].into(),
            Self::U32(values) => values[index].into(),
            Self::U64(values) => values[index],
        }
    }

    pub(super) fn set(&mut self, index: usize, value: u64) {
        fn store<T: TryFrom<u64>>(cell: &mut T, value: u64) -> bool {
            T::try_from(value).map(|value| *cell = value).is_ok()
        }
        let stored = with_cells!(self, values => store(&mut values[index], value));
        if !stored {
            let mut wider = Self::zeros(self.len(), value);
            for index in 0..self.len() {
                wider.set(index, self.get(index));
            }
            *self = wider;
            self.set(index, value);
        }
    }

    pub(super) fn clear(&mut self) {
        with_cells!(self, values => values.fill(0));
    }

    pub(super) fn heap_bytes(&self) -> usize {
        with_cells!(self, values => size_of_val::<[_]>(values))
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
        }
    }

    #[test]
    fn a_value_too_large_widens_all_and_loses_none() {
        let mut cells = Cells::zeros(3, 10);
        cells.set(0, 255);
        cells.set(1, 70_000);
        assert_eq!([0, 1, 2].map(|index| cells.get(index)), [255, 70_000, 0]);
        cells.set(2, u64::MAX);
        assert_eq!([0, 1, 2].map(|index| cells.get(index)), [255, 70_000, u64::MAX]);
        cells.clear();
        assert_eq!(cells.get(2), 0);
    }
}
