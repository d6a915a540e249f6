//! The system's clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Clock, TIME_MAX_US, whole_us};

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
}
