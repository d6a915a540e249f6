//! Until when a caller waits.

use std::time::{Duration, Instant as StdInstant};

use tokio::time::Instant;

/// The deadline of a call, or of all calls of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    called: Instant,
    at: Instant,
}

impl Deadline {
    /// At `until`, or if the call brings none after `wait_default`, counted from now.
    pub(super) fn new(until: Option<StdInstant>, wait_default: Duration) -> Self {
        let called = Instant::now();
        Self { called, at: until.map_or_else(|| called + wait_default, Instant::from_std) }
    }

    pub(super) fn at(self) -> Instant {
        self.at
    }

    pub(super) fn has_passed(self) -> bool {
        Instant::now() >= self.at
    }

    /// From the call to the deadline, in whole milliseconds, rounded up; zero if it was called too late.
    pub(super) fn wait(self) -> Duration {
        let wait = self.at.saturating_duration_since(self.called);
        let part = wait.subsec_nanos() % 1_000_000;
        if part == 0 { wait } else { wait + Duration::from_nanos(u64::from(1_000_000 - part)) }
    }
}
