//! The line of a `gcra` limit, in 32 bytes where it fits.

use std::num::NonZeroU64;

use crate::receipt::Backlog;

/// What `gcra` keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Line {
    /// The instant of the backlog. Time does not run backwards past it.
    pub(super) as_of_us: u64,
    /// Occupied length at that instant, in unit-microseconds.
    pub(super) backlog: Backlog,
    /// Units that drain per window: the limit at that time, 0 before the first charge.
    pub(super) drained_per_window: u64,
    /// Units that refunds and credits took out of the line: the stretch of a receipt may have moved by as many.
    pub(super) given_back: u64,
    /// When the last stretch ends as it was charged, ignoring later refunds: until then a receipt may be
    /// presented. The line itself may end later, if the limit was lowered.
    pub(super) charges_end_us: u64,
}

/// A [`Line`] in 32 bytes if the backlog fits 64 bits and few units were given back, as for nearly all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PackedLine {
    InPlace(ShortLine),
    OnHeap(Box<Line>),
}

/// A [`Line`] of small numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShortLine {
    /// Never zero, as it is marked: the compiler's niche for the heap variant.
    marked_as_of_us: NonZeroU64,
    pub(super) backlog: u64,
    /// The units that drain per window and, above them, the units given back.
    drained_and_given: u64,
    pub(super) charges_end_us: u64,
}

/// Set in every instant in place; instants are below 2^58.
const MARK: NonZeroU64 = NonZeroU64::new(1 << 63).expect("a power of two");
/// Bits of the units that drain per window: limits are at most 10^12.
const DRAINED_BITS: u32 = 40;

impl ShortLine {
    #[inline]
    pub(super) fn as_of_us(&self) -> u64 {
        self.marked_as_of_us.get() ^ MARK.get()
    }

    #[inline]
    pub(super) fn set_as_of_us(&mut self, as_of_us: u64) {
        self.marked_as_of_us = MARK | as_of_us;
    }

    #[inline]
    pub(super) fn drained_per_window(&self) -> u64 {
        self.drained_and_given & ((1 << DRAINED_BITS) - 1)
    }

    #[inline]
    pub(super) fn given_back(&self) -> u64 {
        self.drained_and_given >> DRAINED_BITS
    }
}

impl Default for PackedLine {
    fn default() -> Self {
        Self::new(&Line::default())
    }
}

impl PackedLine {
    pub(super) fn new(line: &Line) -> Self {
        let Line { as_of_us, backlog, drained_per_window, given_back, charges_end_us } = *line;
        debug_assert!(drained_per_window >> DRAINED_BITS == 0, "a limit above the largest");
        match u64::try_from(backlog.get()) {
            Ok(backlog) if given_back >> (u64::BITS - DRAINED_BITS) == 0 => Self::InPlace(ShortLine {
                marked_as_of_us: MARK | as_of_us,
                backlog,
                drained_and_given: given_back << DRAINED_BITS | drained_per_window,
                charges_end_us,
            }),
            _ => Self::OnHeap(Box::new(*line)),
        }
    }

    pub(super) fn get(&self) -> Line {
        match self {
            Self::InPlace(line) => Line {
                as_of_us: line.as_of_us(),
                backlog: Backlog::new(line.backlog.into()),
                drained_per_window: line.drained_per_window(),
                given_back: line.given_back(),
                charges_end_us: line.charges_end_us,
            },
            Self::OnHeap(line) => **line,
        }
    }

    /// The line; `None` if it is on the heap.
    #[inline]
    pub(super) fn in_place(&mut self) -> Option<&mut ShortLine> {
        if let Self::InPlace(line) = self { Some(line) } else { None }
    }

    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::InPlace(_) => 0,
            Self::OnHeap(_) => size_of::<Line>(),
        }
    }

    /// Most heap bytes by which a charge under a limit grows it.
    #[inline]
    pub(super) fn growth_bytes_max(&self, units: u64, window_us: u64) -> usize {
        let Self::InPlace(line) = self else { return 0 };
        // Another limit adds what is used to the units given back.
        let limit_changes = line.backlog > 0 && line.drained_per_window() != units;
        let fits = !limit_changes && units.checked_mul(window_us).is_some();
        if fits { 0 } else { size_of::<Line>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::LIMIT_MAX;
    use crate::time::TIME_MAX_US;

    #[test]
    fn a_line_of_small_numbers_is_in_place() {
        assert_eq!(size_of::<PackedLine>(), 32);
        let ordinary = Line {
            as_of_us: 7,
            backlog: Backlog::new(30),
            drained_per_window: 4,
            given_back: 5,
            charges_end_us: 15,
        };
        let lines = [
            (Line::default(), true),
            (ordinary, true),
            (Line { as_of_us: TIME_MAX_US, drained_per_window: LIMIT_MAX, ..ordinary }, true),
            (Line { backlog: Backlog::new(u64::MAX.into()), given_back: (1 << 24) - 1, ..ordinary }, true),
            (Line { backlog: Backlog::new(1 << 64), ..ordinary }, false),
            (Line { given_back: 1 << 24, ..ordinary }, false),
        ];
        for (line, in_place) in lines {
            let mut packed = PackedLine::new(&line);
            assert_eq!((packed.get(), packed.in_place().is_some()), (line, in_place));
            assert_eq!(packed.heap_bytes() == 0, in_place);
        }
    }
}
