//! A line from ticks to time behind a sequence lock: many threads read it, one replaces it rarely.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A part is 1/1024 us: about a nanosecond, and converted by a shift.
pub(super) const PARTS_PER_US: u64 = 1 << PARTS_PER_US_LOG2;
pub(super) const PARTS_PER_US_LOG2: u32 = 10;

/// Binary places of a slope. A line of 2^20 parts, a millisecond, still fits 64 bits with them.
pub(super) const SLOPE_PLACES: u32 = 40;

/// A linear function from ticks to time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The count where it begins.
    pub(super) ticks: u64,
    /// The instant there, in parts.
    pub(super) parts: u64,
    /// Parts per tick, times 2^[`SLOPE_PLACES`].
    pub(super) slope: u64,
    /// The line is valid for fewer ticks than this; with 0 ticks, never.
    pub(super) span_ticks: u64,
}

impl Line {
    /// The instant at a count, if it is on the line. A count before its beginning wraps to one far beyond its end.
    #[inline]
    pub(super) fn at(&self, ticks: u64) -> Option<u64> {
        let ticks = ticks.wrapping_sub(self.ticks);
        (ticks < self.span_ticks).then(|| self.parts + ((ticks * self.slope) >> SLOPE_PLACES))
    }

    /// No instant on the line is later.
    pub(super) fn end(&self) -> u64 {
        self.parts + ((self.span_ticks * self.slope) >> SLOPE_PLACES)
    }
}

/// A [`Line`] behind a sequence lock, and a floor for readings.
///
/// Readers write nothing. They see either a whole line or that it is being replaced. It has its own cache
/// line, to avoid false sharing.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct SharedLine {
    /// Odd while the line is being replaced.
    version: AtomicU64,
    ticks: AtomicU64,
    parts: AtomicU64,
    slope: AtomicU64,
    span_ticks: AtomicU64,
    /// The latest reading that was not on the line; see [`SharedLine::raise_floor`].
    floor: AtomicU64,
}

impl SharedLine {
    /// The line; `None` while it is being replaced.
    #[inline]
    pub(super) fn load(&self) -> Option<Line> {
        let version = self.version.load(Ordering::Acquire);
        let line = Line {
            ticks: self.ticks.load(Ordering::Relaxed),
            parts: self.parts.load(Ordering::Relaxed),
            slope: self.slope.load(Ordering::Relaxed),
            span_ticks: self.span_ticks.load(Ordering::Relaxed),
        };
        // If a field is from a later line, so is the version that is read now.
        fence(Ordering::Acquire);
        let whole = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        whole.then_some(line)
    }

    /// Replaces the line. One thread at a time.
    ///
    /// The old one may have been read up to its end, and the new one may begin before that if ticks became
    /// more frequent: time then stands still until the new line has caught up.
    pub(super) fn replace(&self, line: Line) {
        let version = self.version.load(Ordering::Relaxed);
        let old = self.load().expect("one thread at a time replaces the line");
        self.raise_floor(old.end());
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.ticks.store(line.ticks, Ordering::Relaxed);
        self.parts.store(line.parts, Ordering::Relaxed);
        self.slope.store(line.slope, Ordering::Relaxed);
        self.span_ticks.store(line.span_ticks, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// Raises the floor to a reading that is not on the line, so that no later reading is earlier. Returns the
    /// reading to show: the floor, if it was higher.
    pub(super) fn raise_floor(&self, parts: u64) -> u64 {
        self.floor.fetch_max(parts, Ordering::Relaxed).max(parts)
    }

    /// The reading to show for an instant on the line. It does not raise the floor: readings on the line are monotonic
    /// already.
    #[inline]
    pub(super) fn at_least_floor(&self, parts: u64) -> u64 {
        self.floor.load(Ordering::Relaxed).max(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tick is half a part.
    const LINE: Line = Line { ticks: 1_000, parts: 500, slope: 1 << (SLOPE_PLACES - 1), span_ticks: 200 };

    #[test]
    fn a_line_is_followed_from_its_beginning_to_its_end() {
        assert_eq!(LINE.at(999), None);
        assert_eq!(LINE.at(1_000), Some(500));
        assert_eq!(LINE.at(1_199), Some(599));
        assert_eq!(LINE.at(1_200), None);
        assert_eq!(LINE.end(), 600);
        assert_eq!(Line::default().at(0), None, "a line of no ticks");
        assert_eq!(Line { ticks: u64::MAX, ..LINE }.at(9), Some(505), "counters may wrap");
    }

    #[test]
    fn readings_never_go_back() {
        let shared = SharedLine::default();
        assert_eq!(shared.raise_floor(510), 510);
        assert_eq!(shared.raise_floor(400), 510);
        shared.replace(LINE);
        assert_eq!(shared.load(), Some(LINE));
        assert_eq!(shared.at_least_floor(505), 510, "shown before the line began");
        assert_eq!(shared.at_least_floor(520), 520);
        shared.replace(Line { parts: 550, ..LINE });
        assert_eq!(shared.at_least_floor(551), 600, "the end of the line before");
    }

    #[test]
    fn readers_see_whole_lines() {
        let shared = SharedLine::default();
        let line_of = |number| Line { ticks: number, parts: number, slope: number, span_ticks: number };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < 999 {
                        let Some(line) = shared.load() else { continue };
                        assert_eq!(line, line_of(line.ticks));
                        assert!(line.ticks >= last);
                        last = line.ticks;
                    }
                });
            }
            (0..1_000).for_each(|number| shared.replace(line_of(number)));
        });
    }
}
