//! A clock for tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Clock, TIME_MAX_US, whole_us};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
