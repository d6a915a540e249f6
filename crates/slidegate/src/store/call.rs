//! At which time a call is made, how long it may take, and whether it may block.

use std::time::Instant;

/// How a store is called: at which instant, until when an answer is of use, and whether the caller's thread may be
/// blocked.
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
    /// Now, by the store's own clock: processes that share a store share its clock, however wrong theirs are.
    #[must_use]
    #[inline]
    pub fn now() -> Self {
        Self { at_us: None, deadline: None, blocking: false }
    }

    /// At that instant, in microseconds since 1970 and at most [`crate::time::TIME_MAX_US`]; for tests and
    /// replays. It may be earlier than that of a call before it: time then stands still for states that have
    /// seen a later one.
    #[must_use]
    pub fn at_us(at_us: u64) -> Self {
        Self { at_us: Some(at_us), ..Self::now() }
    }

    /// The same call with a deadline. A store that waits, for a lock or for a network, does not begin to execute the call
    /// after it, and answers that it was [unavailable](crate::store::StoreError::Unavailable); one that never waits
    /// executes the call at once.
    #[must_use]
    #[inline]
    pub fn with_deadline(self, deadline: Option<Instant>) -> Self {
        Self { deadline, ..self }
    }

    /// The same call by a caller whose thread may be blocked. A store with a thread of its own for calls that wait, as a
    /// file has, executes it on the caller's.
    #[must_use]
    #[inline]
    pub fn blocking(self) -> Self {
        Self { blocking: true, ..self }
    }

    /// Whether the thread that makes it may be blocked.
    #[must_use]
    pub fn may_block(self) -> bool {
        self.blocking
    }

    /// The instant it is made at; `None` if the store's clock says.
    #[must_use]
    #[inline]
    pub fn instant_us(self) -> Option<u64> {
        self.at_us
    }

    /// Until when an answer is of use; `None` if the store's own deadline holds.
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        self.deadline
    }
}
