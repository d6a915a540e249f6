//! A clock that can be set back or ahead.

use std::sync::atomic::{AtomicI64, Ordering};

use super::{Clock, TIME_MAX_US};

/// A clock whose reading is another clock's, off by a step that can be changed in either direction:
/// for testing what a limiter does when time is set back or leaps ahead.
///
/// ```
/// use slidegate::time::{Clock, JumpingClock, ManualClock};
///
/// let clock = JumpingClock::new(ManualClock::at_us(1_000));
/// clock.jump_us(-400);
/// assert_eq!(clock.now_us(), 600);
/// ```
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

    /// By the clock behind this one, for what is left now. A jump wakes nobody.
    fn park_until_us(&self, until_us: u64) {
        let left_us = until_us.saturating_sub(self.now_us());
        self.inner.park_until_us(self.inner.now_us().saturating_add(left_us));
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::super::ManualClock;
    use super::*;

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

    #[test]
    fn threads_park_by_the_clock_behind() {
        let clock = JumpingClock::new(ManualClock::at_us(1_000));
        clock.jump_us(-400);
        thread::scope(|scope| {
            scope.spawn(|| {
                while clock.now_us() < 700 {
                    clock.park_until_us(700);
                }
            });
            while clock.inner().sleepers() == 0 {
                thread::yield_now();
            }
            assert_eq!(clock.inner().next_end_us(), Some(1_100));
            clock.inner().set_us(1_100);
        });
    }
}
