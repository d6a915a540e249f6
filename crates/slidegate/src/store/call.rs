//! The options of a store call: its time, its deadline, and whether it may block.

use std::time::Instant;

use crate::time::TIME_MAX_US;

/// The options of a store call: its instant, its deadline, and whether it may block the caller's thread.
///
/// ```
/// use slidegate::store::Call;
///
/// let now = Call::now();
/// let replayed = Call::at_us(1_745_000_145_000_000);
/// assert_ne!(now, replayed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Call {
    at_us: Option<u64>,
    deadline: Option<Instant>,
    blocking: bool,
}

impl Call {
    /// A call now, by the store's own clock: processes that share a store share its clock.
    #[must_use]
    #[inline]
    pub fn now() -> Self {
        Self { at_us: None, deadline: None, blocking: false }
    }

    /// A call at that instant, in microseconds since 1970; for tests and replays. It may be earlier than an earlier
    /// call's: time then stands still for states that have seen a later instant.
    ///
    /// # Panics
    ///
    /// If the instant is after [`TIME_MAX_US`]: sums of instants and windows could overflow in the store.
    #[must_use]
    pub fn at_us(at_us: u64) -> Self {
        assert!(at_us <= TIME_MAX_US, "{at_us} us is after the year 9999, the latest instant of a call");
        Self { at_us: Some(at_us), ..Self::now() }
    }

    /// The same call with a deadline. A store that waits for a lock or a network does not start the call after it, and
    /// fails as [unavailable](crate::store::StoreError::Unavailable); a store that never waits ignores it.
    #[must_use]
    #[inline]
    pub fn with_deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// The same call, allowed to block the caller's thread. A store with a worker thread, as for a file, executes the
    /// call on the caller's thread instead.
    #[must_use]
    #[inline]
    pub fn blocking(self) -> Self {
        Self { blocking: true, ..self }
    }

    /// Whether it may block the caller's thread.
    #[must_use]
    pub fn may_block(self) -> bool {
        self.blocking
    }

    /// The instant of the call; `None` for the store's time.
    #[must_use]
    #[inline]
    pub fn instant_us(self) -> Option<u64> {
        self.at_us
    }

    /// The deadline; `None` for the store's own.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_instant_of_the_year_9999_is_accepted() {
        assert_eq!(Call::at_us(TIME_MAX_US).instant_us(), Some(TIME_MAX_US));
    }

    #[test]
    #[should_panic(expected = "is after the year 9999")]
    fn a_later_instant_panics_before_any_store_is_called() {
        let _ = Call::at_us(TIME_MAX_US + 1);
    }
}
