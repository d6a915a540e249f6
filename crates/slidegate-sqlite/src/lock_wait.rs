//! Waiting for the file lock, until a deadline.
//!
//! The write lock of a file has no queue: the first process to try when it is free gets it. Pauses are short and random,
//! so that it is never free for long while many wait. A call that has waited longer tries more often, so that newcomers
//! do not starve it. Rejected: exponential backoff, as SQLite's busy handler does, which favours newcomers; and a file
//! lock of the system, which has a queue but no deadline.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use slidegate::store::Call;
use slidegate::time::{Clock, SystemClock};

use crate::file_error::FileError;

/// The longest first pause: longer than most transactions take.
const PAUSE_FIRST_US: u64 = 500;
/// The longest pause in the first half of the wait: with two hundred waiting, one tries every fifty microseconds.
const PAUSE_MAX_US: u64 = 10_000;
/// The longest pause in the second half of the wait.
const PAUSE_LAST_US: u64 = 1_000;

/// The start and the deadline of a call, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    begun_us: u64,
    until_us: u64,
}

impl Deadline {
    /// The deadline of a call made now, `default` from now if it has none. An error if it has passed.
    pub(crate) fn of(clock: &SystemClock, call: Call, default: Duration) -> Result<Self, FileError> {
        let left = match call.deadline() {
            None => default,
            Some(instant) => {
                Some(left_until(instant)).filter(|left| !left.is_zero()).ok_or_else(FileError::timed_out)?
            }
        };
        Ok(Self::after(clock, left))
    }

    pub(crate) fn after(clock: &SystemClock, wait: Duration) -> Self {
        let begun_us = clock.now_us();
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        Self { begun_us, until_us: begun_us.saturating_add(wait_us) }
    }

    pub(crate) fn has_passed(self, now_us: u64) -> bool {
        now_us >= self.until_us
    }
}

#[expect(clippy::disallowed_methods, reason = "the deadline of a call is an instant of the system's clock")]
fn left_until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}

/// The wait of one call for the connection and the file lock.
pub(crate) struct LockWait<'c> {
    clock: &'c SystemClock,
    deadline: Deadline,
    pauses: u64,
    random: RandomState,
    has_caller: Option<&'c dyn Fn() -> bool>,
}

impl fmt::Debug for LockWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { deadline, pauses, .. } = self;
        f.debug_struct("LockWait").field("deadline", deadline).field("pauses", pauses).finish_non_exhaustive()
    }
}

impl<'c> LockWait<'c> {
    pub(crate) fn new(clock: &'c SystemClock, deadline: Deadline) -> Self {
        Self { clock, deadline, pauses: 0, random: RandomState::new(), has_caller: None }
    }

    /// The same, ending early when `has_caller` returns false. It is called before every try.
    pub(crate) fn while_called(self, has_caller: &'c dyn Fn() -> bool) -> Self {
        Self { has_caller: Some(has_caller), ..self }
    }

    /// Whether a caller still waits for the answer.
    pub(crate) fn has_caller(&self) -> bool {
        self.has_caller.is_none_or(|has_caller| has_caller())
    }

    /// Whether the deadline has passed, or no caller waits any more.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.has_passed(self.clock.now_us()) || !self.has_caller()
    }

    /// How long to wait at once: the time left, or until the next check for a caller.
    pub(crate) fn wait_max(&self) -> Duration {
        let left = self.left();
        if self.has_caller.is_some() { left.min(Duration::from_micros(PAUSE_MAX_US)) } else { left }
    }

    /// The time left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_micros(self.deadline.until_us.saturating_sub(self.clock.now_us()))
    }

    /// Pauses before the next try. Returns whether there is time for one, and a caller who waits.
    pub(crate) fn pause(&mut self) -> bool {
        let now_us = self.clock.now_us();
        if self.deadline.has_passed(now_us) || !self.has_caller() {
            return false;
        }
        self.pauses += 1;
        let max_us = self.pause_max_us(now_us).max(1);
        let pause_us = 1 + self.random.hash_one(self.pauses) % max_us;
        let end_us = (now_us + pause_us).min(self.deadline.until_us);
        // Other code may unpark this thread.
        while self.clock.now_us() < end_us {
            self.clock.park_until_us(end_us);
        }
        self.has_caller()
    }

    fn pause_max_us(&self, now_us: u64) -> u64 {
        let Deadline { begun_us, until_us } = self.deadline;
        let (waited_us, all_us) = (now_us.saturating_sub(begun_us), until_us - begun_us);
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
    fn it_ends_at_the_deadline() {
        let clock = SystemClock::new();
        let mut lock_wait = LockWait::new(&clock, Deadline::after(&clock, Duration::from_millis(20)));
        let begun_us = clock.now_us();
        while lock_wait.pause() {}
        let waited_us = clock.now_us() - begun_us;
        assert!(waited_us >= 19_000, "gave up after {waited_us} us");
        assert_eq!(lock_wait.left(), Duration::ZERO);
        assert!(!LockWait::new(&clock, Deadline::after(&clock, Duration::ZERO)).pause());
    }

    #[test]
    fn pauses_are_shorter_towards_the_deadline() {
        let clock = SystemClock::new();
        let mut lock_wait = LockWait::new(&clock, Deadline::after(&clock, Duration::from_secs(100)));
        lock_wait.pauses = 100;
        let at = |seconds: u64| lock_wait.pause_max_us(lock_wait.deadline.begun_us + seconds * 1_000_000);
        assert_eq!([at(0), at(24), at(26), at(51), at(99)], [10_000, 10_000, 5_000, 1_000, 1_000]);
    }

    #[test]
    fn a_wait_without_a_caller_ends() {
        let clock = SystemClock::new();
        let deadline = Deadline::after(&clock, Duration::from_secs(600));
        let checks = std::cell::Cell::new(0);
        let has_caller = || checks.replace(checks.get() + 1) < 5;
        let mut lock_wait = LockWait::new(&clock, deadline).while_called(&has_caller);
        while lock_wait.pause() {}
        assert!(checks.get() < 10, "{} checks", checks.get());
        assert!(lock_wait.is_over() && !lock_wait.left().is_zero());
    }

    #[test]
    fn the_deadline_of_a_call_overrides_that_of_the_store() {
        let (clock, minute) = (SystemClock::new(), Duration::from_secs(60));
        let left =
            |call| Deadline::of(&clock, call, minute).map(|deadline| LockWait::new(&clock, deadline).left());
        assert!(left(Call::now()).unwrap() > minute / 2);
        let (soon, passed) = (Deadline::instant_after(minute / 6), Deadline::instant_after(Duration::ZERO));
        assert!(left(Call::now().with_deadline(Some(soon))).unwrap() < minute / 2);
        assert_eq!(left(Call::now().with_deadline(Some(passed))), Err(FileError::timed_out()));
    }

    impl Deadline {
        #[expect(clippy::disallowed_methods, reason = "callers pass an instant")]
        fn instant_after(wait: Duration) -> Instant {
            Instant::now() + wait
        }
    }
}
