//! Time: whole microseconds since 1970, read through a [`Clock`].
//!
//! Algorithms never read a clock; they are told `now_us`. This is the one file that may ask the
//! operating system for the time.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The end of the year 9999: no clock shows more, so that sums of instants and windows cannot overflow.
pub const TIME_MAX_US: u64 = 253_402_300_799_999_999;

/// Where a store learns what time it is.
///
/// ```
/// use slidegate::time::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::at_us(1_745_000_145_000_000);
/// clock.advance(Duration::from_millis(3));
/// assert_eq!(clock.now_us(), 1_745_000_145_003_000);
/// ```
pub trait Clock: Send + Sync {
    /// Microseconds since 1970-01-01T00:00:00Z.
    fn now_us(&self) -> u64;
}

/// The system's clock: read once when it is made, advanced by the monotonic clock from then on.
///
/// It never runs backwards and ignores later corrections of the wall clock, so a window cannot be
/// shortened by an NTP step. Two processes that start at different times may disagree by the
/// corrections made in between; shared stores therefore use the store's own clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    anchor_us: u64,
    started: Instant,
}

impl SystemClock {
    /// Reads the system clock, once.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place where time enters")]
    pub fn new() -> Self {
        // A machine set to before 1970 counts from zero: intervals stay right, dates were wrong anyway.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { anchor_us: whole_us(since_epoch), started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_us(&self) -> u64 {
        self.anchor_us.saturating_add(whole_us(self.started.elapsed())).min(TIME_MAX_US)
    }
}

/// A clock that moves only when told to, and only forward: for tests, replays and simulations.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_us: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now_us`.
    #[must_use]
    pub fn at_us(now_us: u64) -> Self {
        Self { now_us: AtomicU64::new(now_us.min(TIME_MAX_US)) }
    }

    /// Moves forward by `step`, at most to [`TIME_MAX_US`].
    pub fn advance(&self, step: Duration) {
        let advanced = |now_us: u64| Some(now_us.saturating_add(whole_us(step)).min(TIME_MAX_US));
        self.now_us.fetch_update(Ordering::SeqCst, Ordering::SeqCst, advanced).expect("it always moves");
    }

    /// Moves forward to `now_us`, at most to [`TIME_MAX_US`]; an earlier instant leaves the clock where it
    /// is.
    pub fn set_us(&self, now_us: u64) {
        self.now_us.fetch_max(now_us.min(TIME_MAX_US), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> u64 {
        self.now_us.load(Ordering::SeqCst)
    }
}

/// A clock whose reading is another clock's, off by a step that can be changed in either direction:
/// for testing what a limiter does when time is set back or leaps ahead.
#[derive(Debug)]
pub struct JumpingClock<C> {
    inner: C,
    offset_us: AtomicI64,
}

impl<C: Clock> JumpingClock<C> {
    /// A clock that agrees with `inner` until it is told to jump.
    pub fn new(inner: C) -> Self {
        Self { inner, offset_us: AtomicI64::new(0) }
    }

    /// Moves the reading by `step_us`, backwards if negative. Jumps add up.
    pub fn jump_us(&self, step_us: i64) {
        self.offset_us.fetch_add(step_us, Ordering::SeqCst);
    }

    /// The clock behind this one.
    pub fn inner(&self) -> &C {
        &self.inner
    }
}

impl<C: Clock> Clock for JumpingClock<C> {
    fn now_us(&self) -> u64 {
        self.inner.now_us().saturating_add_signed(self.offset_us.load(Ordering::SeqCst)).min(TIME_MAX_US)
    }
}

/// Whole microseconds of a duration, rounded down; half a million years do not fit and saturate.
fn whole_us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_shows_this_century_and_never_runs_backwards() {
        let clock = SystemClock::new();
        let first = clock.now_us();
        assert!(first > 1_700_000_000_000_000, "anchored at {first}");
        assert!((0..1_000).map(|_| clock.now_us()).is_sorted());
    }

    #[test]
    fn manual_clock_refuses_to_go_back() {
        let clock = ManualClock::at_us(50);
        clock.set_us(40);
        assert_eq!(clock.now_us(), 50);
        clock.set_us(60);
        assert_eq!(clock.now_us(), 60);
        clock.advance(Duration::MAX);
        assert_eq!(clock.now_us(), TIME_MAX_US, "time ends before numbers do");
    }

    #[test]
    fn jumping_clock_jumps_both_ways() {
        let clock = JumpingClock::new(ManualClock::at_us(1_000));
        clock.jump_us(-400);
        assert_eq!(clock.now_us(), 600);
        clock.inner().advance(Duration::from_micros(10));
        clock.jump_us(1_000);
        assert_eq!(clock.now_us(), 1_610);
        clock.jump_us(i64::MIN / 2);
        assert_eq!(clock.now_us(), 0, "before 1970 there is nothing");
    }
}
