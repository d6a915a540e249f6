//! Waiting for a turn, until a deadline.
//!
//! The write lock of a file has no queue: whoever asks when it is free has it. Pauses are short and random, so that it
//! is never free for long while many wait; and whoever has waited longer asks more often, so that newcomers do not
//! overtake forever. Rejected: pauses that grow, as SQLite's own do, which serve the last to come first; and a file lock
//! of the system's, which has a queue but no deadline.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use slidegate::time::{Clock, SystemClock};

/// A pause is at most this long at first: longer than most transactions take.
const PAUSE_FIRST_US: u64 = 500;
/// A pause is at most this long while there is time: two hundred who wait so ask every fifty microseconds.
const PAUSE_MAX_US: u64 = 10_000;
/// Towards the deadline a pause is at most this long.
const PAUSE_LAST_US: u64 = 1_000;

/// Until when to wait.
#[derive(Debug)]
pub(crate) struct Patience<'c> {
    clock: &'c SystemClock,
    begun_us: u64,
    until_us: u64,
    pauses: u64,
    random: RandomState,
}

impl<'c> Patience<'c> {
    pub(crate) fn new(clock: &'c SystemClock, deadline: Duration) -> Self {
        let begun_us = clock.now_us();
        let deadline_us = u64::try_from(deadline.as_micros()).unwrap_or(u64::MAX);
        let until_us = begun_us.saturating_add(deadline_us);
        Self { clock, begun_us, until_us, pauses: 0, random: RandomState::new() }
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_micros(self.until_us.saturating_sub(self.clock.now_us()))
    }

    /// Pauses before the next try; says whether there is time for one.
    pub(crate) fn pause(&mut self) -> bool {
        let now_us = self.clock.now_us();
        if now_us >= self.until_us {
            return false;
        }
        self.pauses += 1;
        let most_us = self.pause_most_us(now_us).max(1);
        let pause_us = 1 + self.random.hash_one(self.pauses) % most_us;
        let end_us = (now_us + pause_us).min(self.until_us);
        // Somebody may unpark this thread for reasons of his own.
        while self.clock.now_us() < end_us {
            self.clock.park_until_us(end_us);
        }
        true
    }

    fn pause_most_us(&self, now_us: u64) -> u64 {
        let (waited_us, all_us) = (now_us - self.begun_us, self.until_us - self.begun_us);
        if waited_us > all_us / 2 {
            PAUSE_LAST_US
        } else if waited_us > all_us / 4 {
            PAUSE_MAX_US / 2
        } else {
            (PAUSE_FIRST_US * self.pauses).min(PAUSE_MAX_US)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_it() {
        let clock = SystemClock::new();
        let mut patience = Patience::new(&clock, Duration::from_millis(20));
        let begun_us = clock.now_us();
        while patience.pause() {}
        let waited_us = clock.now_us() - begun_us;
        assert!(waited_us >= 19_000, "gave up after {waited_us} us");
        assert_eq!(patience.left(), Duration::ZERO);
        assert!(!Patience::new(&clock, Duration::ZERO).pause());
    }

    #[test]
    fn who_has_waited_longer_asks_more_often() {
        let clock = SystemClock::new();
        let mut patience = Patience::new(&clock, Duration::from_secs(100));
        patience.pauses = 100;
        let at = |seconds: u64| patience.pause_most_us(patience.begun_us + seconds * 1_000_000);
        assert_eq!([at(0), at(24), at(26), at(51), at(99)], [10_000, 10_000, 5_000, 1_000, 1_000]);
    }
}
