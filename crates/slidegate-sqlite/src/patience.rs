//! Waiting for a turn, until a deadline.
//!
//! The write lock of a file has no queue: the first to ask when it is free has it. Pauses are short and random, so that
//! it is never free for long while many wait; and a call that has waited longer asks more often, so that newcomers do not
//! overtake forever. Rejected: pauses that grow, as SQLite's own do, which serve the last to come first; and a file lock
//! of the system's, which has a queue but no deadline.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use slidegate::store::Call;
use slidegate::time::{Clock, SystemClock};

use crate::failure::Failure;

/// A pause is at most this long at first: longer than most transactions take.
const PAUSE_FIRST_US: u64 = 500;
/// A pause is at most this long while there is time: two hundred who wait so ask every fifty microseconds.
const PAUSE_MAX_US: u64 = 10_000;
/// Towards the deadline a pause is at most this long.
const PAUSE_LAST_US: u64 = 1_000;

/// When a call was made, and until when its answer is of use, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    begun_us: u64,
    until_us: u64,
}

impl Deadline {
    /// That of a call that is made now, with `default` where it names none. A deadline that has passed is a failure.
    pub(crate) fn of(clock: &SystemClock, call: Call, default: Duration) -> Result<Self, Failure> {
        let left = match call.deadline() {
            None => default,
            Some(instant) => {
                Some(left_until(instant)).filter(|left| !left.is_zero()).ok_or_else(Failure::timed_out)?
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

#[expect(
    clippy::disallowed_methods,
    reason = "the deadline of a call is an instant, and only `now` says how far off"
)]
fn left_until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}

/// How a call waits for its turn.
pub(crate) struct Patience<'c> {
    clock: &'c SystemClock,
    deadline: Deadline,
    pauses: u64,
    random: RandomState,
    wanted: Option<&'c dyn Fn() -> bool>,
}

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { deadline, pauses, .. } = self;
        f.debug_struct("Patience").field("deadline", deadline).field("pauses", pauses).finish_non_exhaustive()
    }
}

impl<'c> Patience<'c> {
    pub(crate) fn new(clock: &'c SystemClock, deadline: Deadline) -> Self {
        Self { clock, deadline, pauses: 0, random: RandomState::new(), wanted: None }
    }

    /// The same for as long as `wanted` says so, which is asked before every try.
    pub(crate) fn while_wanted(self, wanted: &'c dyn Fn() -> bool) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// Whether there is still a caller who waits for the answer.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.is_none_or(|wanted| wanted())
    }

    /// Whether the deadline has passed, or nobody waits any more.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.has_passed(self.clock.now_us()) || !self.is_wanted()
    }

    /// How long to wait at a stretch: the time that is left, or until the next look at whether it is still wanted.
    pub(crate) fn stretch(&self) -> Duration {
        let left = self.left();
        if self.wanted.is_some() { left.min(Duration::from_micros(PAUSE_MAX_US)) } else { left }
    }

    /// The time that is left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_micros(self.deadline.until_us.saturating_sub(self.clock.now_us()))
    }

    /// Pauses before the next try; says whether there is time for one, and still a caller who waits.
    pub(crate) fn pause(&mut self) -> bool {
        let now_us = self.clock.now_us();
        if self.deadline.has_passed(now_us) || !self.is_wanted() {
            return false;
        }
        self.pauses += 1;
        let most_us = self.pause_most_us(now_us).max(1);
        let pause_us = 1 + self.random.hash_one(self.pauses) % most_us;
        let end_us = (now_us + pause_us).min(self.deadline.until_us);
        // Another thread may unpark this one for reasons of its own.
        while self.clock.now_us() < end_us {
            self.clock.park_until_us(end_us);
        }
        self.is_wanted()
    }

    fn pause_most_us(&self, now_us: u64) -> u64 {
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
    fn there_is_an_end_to_it() {
        let clock = SystemClock::new();
        let mut patience = Patience::new(&clock, Deadline::after(&clock, Duration::from_millis(20)));
        let begun_us = clock.now_us();
        while patience.pause() {}
        let waited_us = clock.now_us() - begun_us;
        assert!(waited_us >= 19_000, "gave up after {waited_us} us");
        assert_eq!(patience.left(), Duration::ZERO);
        assert!(!Patience::new(&clock, Deadline::after(&clock, Duration::ZERO)).pause());
    }

    #[test]
    fn who_has_waited_longer_asks_more_often() {
        let clock = SystemClock::new();
        let mut patience = Patience::new(&clock, Deadline::after(&clock, Duration::from_secs(100)));
        patience.pauses = 100;
        let at = |seconds: u64| patience.pause_most_us(patience.deadline.begun_us + seconds * 1_000_000);
        assert_eq!([at(0), at(24), at(26), at(51), at(99)], [10_000, 10_000, 5_000, 1_000, 1_000]);
    }

    #[test]
    fn an_answer_that_nobody_wants_is_not_waited_for() {
        let clock = SystemClock::new();
        let deadline = Deadline::after(&clock, Duration::from_secs(600));
        let looks = std::cell::Cell::new(0);
        let wanted = || looks.replace(looks.get() + 1) < 5;
        let mut patience = Patience::new(&clock, deadline).while_wanted(&wanted);
        while patience.pause() {}
        assert!(looks.get() < 10, "{} looks", looks.get());
        assert!(patience.is_over() && !patience.left().is_zero());
    }

    #[test]
    fn the_deadline_of_a_call_comes_before_that_of_the_store() {
        let (clock, minute) = (SystemClock::new(), Duration::from_secs(60));
        let left =
            |call| Deadline::of(&clock, call, minute).map(|deadline| Patience::new(&clock, deadline).left());
        assert!(left(Call::now()).unwrap() > minute / 2);
        let (soon, passed) = (Deadline::instant_after(minute / 6), Deadline::instant_after(Duration::ZERO));
        assert!(left(Call::now().with_deadline(Some(soon))).unwrap() < minute / 2);
        assert_eq!(left(Call::now().with_deadline(Some(passed))), Err(Failure::timed_out()));
    }

    impl Deadline {
        #[expect(clippy::disallowed_methods, reason = "what callers pass is an instant")]
        fn instant_after(wait: Duration) -> Instant {
            Instant::now() + wait
        }
    }
}
