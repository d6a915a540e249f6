//! The monotonic clock, interpolated from the processor's tick counter.
//!
//! ```text
//! time |                     ,.-  the monotonic clock
//!      |            ,.-'|_,.-'
//!      |   ,.-'|_,.-'   each line begins on it and falls behind by 1/1024:
//!      |_.-'            about 1 us until it is replaced after 1 ms
//!      +---------------------------- ticks
//! ```
//!
//! A line that is a little too flat is never ahead of the clock, so the next line begins above its end
//! and readings are monotonic, without a shared maximum that every reader would have to write.
//!
//! There is no calibration phase: until two samples 1 ms apart give a rate, readings are the monotonic clock's. When
//! ticks behave unexpectedly (a virtual machine was migrated, the counter was set), measuring starts again.
//!
//! Two faults are not detected before the end of a line: a counter that is set back within the line, and one that
//! stops. Processors with an invariant counter do neither.

use std::sync::{Mutex, TryLockError};
use std::time::Duration;

use super::line::{Line, PARTS_PER_US, SLOPE_PLACES, SharedLine};
use super::ticks::Ticks;

/// The length of a line: 1 ms.
const SPAN_PARTS: u64 = 1_000 * PARTS_PER_US;

/// Least distance of two samples for a rate. Less than the span, which is counted in ticks.
const MEASURABLE_PARTS: u64 = SPAN_PARTS / 8 * 7;

/// A line is too flat by this share: the monotonic clock's rate may be corrected by 1/2000 meanwhile.
const SLOPE_MARGIN_SHARE: u64 = 1_024;

/// A sample that took longer than this share of the span, 1/4 us, is too imprecise for a line.
const IMPRECISE_SHARE: u64 = 4_096;

/// A rate that differs from the one before by more than this share must be measured again.
const RATE_CHANGE_SHARE: u64 = 256;

/// A line begins 1/16 us before the monotonic clock, because the processor may read the ticks a
/// few instructions early, and because a slow counter shows the last whole tick.
const REORDERING_PARTS: u64 = PARTS_PER_US / 16;

/// Slowest and fastest plausible counter: 16 MHz, 16 GHz.
const TICKS_PER_US: std::ops::RangeInclusive<u64> = 16..=16_000;

/// A monotonic clock; its reading is the time since some instant.
pub(super) trait Reference {
    fn elapsed(&self) -> Duration;
}

/// One reading of the reference and the ticks around it.
#[derive(Debug, Clone, Copy)]
struct Sample {
    ticks_before: u64,
    parts: u64,
    ticks_after: u64,
}

/// A measured rate: ticks per parts, as an unreduced fraction.
#[derive(Debug, Clone, Copy)]
struct Rate {
    ticks: u64,
    parts: u64,
}

/// Fits the next line from samples.
#[derive(Debug, Default)]
struct LineFitter {
    last: Option<Sample>,
    rate: Option<Rate>,
}

#[derive(Debug)]
pub(super) struct Interpolated<T, R> {
    line: SharedLine,
    ticks: T,
    pub(super) reference: R,
    /// The thread that holds the lock replaces the line; the others do not wait, but read the reference.
    fitter: Mutex<LineFitter>,
}

impl<T: Ticks, R: Reference> Interpolated<T, R> {
    pub(super) fn new(ticks: T, reference: R) -> Self {
        Self { line: SharedLine::default(), ticks, reference, fitter: Mutex::default() }
    }

    /// Time since the reference's origin, in parts.
    #[inline]
    pub(super) fn now_parts(&self) -> u64 {
        self.interpolate().unwrap_or_else(|| self.read_reference())
    }

    #[inline]
    fn interpolate(&self) -> Option<u64> {
        let parts = self.line.load()?.at(self.ticks.read())?;
        Some(self.line.at_least_floor(parts))
    }

    #[cold]
    fn read_reference(&self) -> u64 {
        if !self.ticks.steady() {
            return self.reference_parts();
        }
        let mut fitter = match self.fitter.try_lock() {
            Ok(fitter) => fitter,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.line.raise_floor(self.reference_parts()),
        };
        // Another thread may have replaced the line meanwhile.
        if let Some(parts) = self.interpolate() {
            return parts;
        }
        let sample = self.sample();
        if let Some(line) = fitter.fit(sample) {
            self.line.replace(line);
        }
        self.line.raise_floor(sample.parts)
    }

    /// Reads the ticks before and after the reference, so that a pause in between is detected.
    fn sample(&self) -> Sample {
        let ticks_before = self.ticks.read();
        let parts = self.reference_parts();
        Sample { ticks_before, parts, ticks_after: self.ticks.read() }
    }

    fn reference_parts(&self) -> u64 {
        let elapsed = self.reference.elapsed();
        let subsecond = u64::from(elapsed.subsec_nanos()) * PARTS_PER_US / 1_000;
        elapsed.as_secs().saturating_mul(1_000_000 * PARTS_PER_US).saturating_add(subsecond)
    }
}

impl LineFitter {
    /// The next line; `None` keeps the old one, which has ended.
    fn fit(&mut self, sample: Sample) -> Option<Line> {
        let Some(last) = self.last else {
            self.last = Some(sample);
            return None;
        };
        let too_early = sample.parts - last.parts < MEASURABLE_PARTS;
        if too_early && self.rate.is_none() {
            return None;
        }
        let measured = if too_early { None } else { Rate::between(last, sample) };
        let believed = measured.filter(|rate| self.rate.is_none_or(|known| rate.agrees_with(known)));
        let Some(rate) = believed.filter(|rate| !rate.too_vague(last)) else {
            *self = Self { last: Some(sample), rate: None };
            // An empty line, as the ticks may run into the old line again.
            return Some(Line::default());
        };
        if rate.too_vague(sample) {
            return None;
        }
        *self = Self { last: Some(sample), rate: Some(rate) };
        Some(rate.line_from(sample))
    }
}

impl Rate {
    /// Counts the ticks from before the first reading until after the second, at least as many as between the
    /// readings: the rate is never too fast. `None` if it is implausible.
    fn between(first: Sample, second: Sample) -> Option<Self> {
        let ticks = second.ticks_after.wrapping_sub(first.ticks_before);
        let parts = second.parts - first.parts;
        let ticks_per_us = u128::from(ticks) * u128::from(PARTS_PER_US) / u128::from(parts);
        let possible = u64::try_from(ticks_per_us).is_ok_and(|rate| TICKS_PER_US.contains(&rate));
        possible.then_some(Self { ticks, parts })
    }

    fn agrees_with(self, known: Self) -> bool {
        let (span, known) = (self.span_ticks(), known.span_ticks());
        span.abs_diff(known) <= known / RATE_CHANGE_SHARE
    }

    fn too_vague(self, sample: Sample) -> bool {
        sample.ticks_after.wrapping_sub(sample.ticks_before) > self.span_ticks() / IMPRECISE_SHARE
    }

    fn line_from(self, sample: Sample) -> Line {
        let slope = (u128::from(self.parts) << SLOPE_PLACES) / u128::from(self.ticks);
        let slope = u64::try_from(slope).expect("a tick is at most 1/16 us");
        Line {
            ticks: sample.ticks_after,
            parts: sample.parts.saturating_sub(REORDERING_PARTS),
            slope: slope - slope / SLOPE_MARGIN_SHARE,
            span_ticks: self.span_ticks(),
        }
    }

    fn span_ticks(self) -> u64 {
        let ticks = u128::from(self.ticks) * u128::from(SPAN_PARTS) / u128::from(self.parts);
        u64::try_from(ticks).expect("16 million ticks at most")
    }
}

#[cfg(test)]
mod tests;
