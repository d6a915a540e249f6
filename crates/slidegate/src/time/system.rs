//! The system clock: read once and advanced by the monotonic clock, or read every time.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::interpolated::{Interpolated, Reference};
use super::line::PARTS_PER_US_LOG2;
use super::ticks::ProcessorTicks;
use super::{Clock, TIME_MAX_US, whole_us};

/// The system clock, read once at creation and advanced by the monotonic clock from then on.
///
/// It never runs backwards and ignores later corrections of the wall clock, so a window cannot be
/// shortened by an NTP step. Two processes that start at different times may disagree by the
/// corrections made in between; shared stores therefore use the store's own clock.
///
/// If the processor has a counter of constant rate, most readings come from it and are at most about a
/// microsecond late; they cost a few nanoseconds and no fence. The price: no thread sees time run backwards, but a
/// thread that has just received another thread's reading may read a microsecond less, because its read of the counter
/// is not ordered after the message. States stand still then.
///
/// ```
/// use slidegate::time::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// let earlier_us = clock.now_us();
/// assert!(earlier_us <= clock.now_us());
/// ```
#[derive(Debug)]
pub struct SystemClock {
    started_us: u64,
    monotonic: Interpolated<ProcessorTicks, Instant>,
}

/// The monotonic clock, since an instant.
impl Reference for Instant {
    fn elapsed(&self) -> Duration {
        Self::elapsed(self)
    }
}

impl SystemClock {
    /// Reads the system clock, once.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the folder where time enters")]
    pub fn new() -> Self {
        let (started_us, started) = (WallClock.now_us(), Instant::now());
        Self { started_us, monotonic: Interpolated::new(ProcessorTicks::new(), started) }
    }
}

/// The instant after `wait`; at most a century, to avoid an overflow.
#[expect(clippy::disallowed_methods, reason = "the folder where time enters")]
pub(crate) fn deadline_after(wait: Duration) -> Option<Instant> {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
    Instant::now().checked_add(wait.min(CENTURY))
}

/// A clock for the whole process, created on first use.
pub(crate) fn process_clock() -> &'static SystemClock {
    static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);
    &CLOCK
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now_us(&self) -> u64 {
        // Both are below 2^58.
        (self.started_us + (self.monotonic.now_parts() >> PARTS_PER_US_LOG2)).min(TIME_MAX_US)
    }
}

/// The system clock, read every time: it follows corrections, and may be set back.
///
/// For stores that several processes of a machine share: each [`SystemClock`] has its own start.
///
/// ```
/// use slidegate::time::{Clock, WallClock};
///
/// assert!(WallClock.now_us() > 1_700_000_000_000_000);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the folder where time enters")]
    fn now_us(&self) -> u64 {
        // A clock set to before 1970 shows zero.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        whole_us(since_epoch).min(TIME_MAX_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for several lines.
    const SHOWN: Duration = Duration::from_millis(20);

    #[test]
    fn system_clock_shows_this_century_and_never_runs_backwards() {
        let clock = SystemClock::new();
        let first = clock.now_us();
        assert!(first > 1_700_000_000_000_000, "anchored at {first}");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (mut last, end) = (first, first + whole_us(SHOWN));
                    while last < end {
                        let now_us = clock.now_us();
                        assert!(last <= now_us, "{last} then {now_us}");
                        last = now_us;
                    }
                });
            }
        });
    }

    #[test]
    fn system_clock_is_never_ahead_of_the_monotonic_clock() {
        let clock = SystemClock::new();
        let monotonic_us = || clock.started_us + whole_us(clock.monotonic.reference.elapsed());
        let end_us = monotonic_us() + whole_us(SHOWN);
        while monotonic_us() < end_us {
            let shown_us = clock.now_us();
            let true_us = monotonic_us();
            assert!(shown_us <= true_us, "{shown_us} at {true_us}");
        }
    }
}
