//! A watchdog for the time limits of requests.
//!
//! The connection records each change of its stage; the watchdog looks periodically and counts how many looks the stage
//! has lasted. So a request reads no clock and sets no timer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has arrived since the last answer.
    Idle,
    /// The head of a request is arriving.
    Head,
    /// The body of a request is arriving.
    Body,
    /// A complete request is being answered.
    Answering,
}

const STAGES: [Stage; 4] = [Stage::Idle, Stage::Head, Stage::Body, Stage::Answering];
const STAGE_BITS: u32 = 2;
const STAGE_MASK: u64 = (1 << STAGE_BITS) - 1;

/// The stage of a connection, shared with its watchdog.
#[derive(Debug, Default)]
pub(super) struct RequestProgress {
    /// The stage in the lowest bits, and a counter of changes above them.
    version: AtomicU64,
    is_late: AtomicBool,
}

impl RequestProgress {
    pub(super) fn stage(&self) -> Stage {
        STAGES[usize::try_from(self.version.load(Ordering::Relaxed) & STAGE_MASK).unwrap_or_default()]
    }

    pub(super) fn enter(&self, stage: Stage) {
        // Only the connection's own task writes.
        let version = self.version.load(Ordering::Relaxed) >> STAGE_BITS;
        self.version.store((version + 1) << STAGE_BITS | stage as u64, Ordering::Relaxed);
    }

    /// Records that bytes have arrived.
    pub(super) fn arrived(&self) {
        if self.stage() == Stage::Idle {
            self.enter(Stage::Head);
        }
    }

    /// Tells the task that waits for a body to give up.
    pub(super) fn set_late(&self) {
        self.is_late.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }
}

/// Looks at a [`RequestProgress`] periodically.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Time between two looks.
    pub(super) period: Duration,
    version: u64,
    looks: u32,
}

impl Watchdog {
    pub(super) fn new(period: Duration) -> Self {
        Self { period, version: 0, looks: 0 }
    }

    /// The stage, and how long the connection has been in it at least.
    pub(super) fn look(&mut self, progress: &RequestProgress) -> (Stage, Duration) {
        let version = progress.version.load(Ordering::Relaxed);
        if version == self.version {
            self.looks = self.looks.saturating_add(1);
        } else {
            (self.version, self.looks) = (version, 0);
        }
        (progress.stage(), self.period.saturating_mul(self.looks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_stage_grows_until_it_changes() {
        let (progress, mut watchdog) = (RequestProgress::default(), Watchdog::new(Duration::from_secs(1)));
        assert_eq!(watchdog.look(&progress), (Stage::Idle, Duration::from_secs(1)));
        assert_eq!(watchdog.look(&progress), (Stage::Idle, Duration::from_secs(2)));
        progress.arrived();
        assert_eq!(watchdog.look(&progress), (Stage::Head, Duration::ZERO));
        progress.arrived();
        assert_eq!(
            watchdog.look(&progress),
            (Stage::Head, Duration::from_secs(1)),
            "a byte more is no progress"
        );
        progress.enter(Stage::Answering);
        progress.enter(Stage::Idle);
        progress.arrived();
        assert_eq!(watchdog.look(&progress), (Stage::Head, Duration::ZERO), "another request");
    }
}
