//! How far a connection has come with its request, for the task that watches the clock.
//!
//! The connection only says when it goes on; the watcher looks now and then, and counts for how many looks nothing has
//! changed. A request so costs no reading of a clock and sets no timer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing has arrived since the last answer.
    Idle,
    /// The head of a request is arriving.
    Head,
    /// Its body is.
    Body,
    /// All of it is here, and is being answered.
    Answering,
}

const STAGES: [Stage; 4] = [Stage::Idle, Stage::Head, Stage::Body, Stage::Answering];
const STAGE_BITS: u32 = 2;
const STAGE_MASK: u64 = (1 << STAGE_BITS) - 1;

/// What a connection and its watcher share.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The stage in the lowest bits, and above them how often it has changed.
    turn: AtomicU64,
    is_late: AtomicBool,
}

impl Watch {
    pub(super) fn stage(&self) -> Stage {
        STAGES[usize::try_from(self.turn.load(Ordering::Relaxed) & STAGE_MASK).unwrap_or_default()]
    }

    pub(super) fn enter(&self, stage: Stage) {
        // Only the connection's own task writes.
        let turn = self.turn.load(Ordering::Relaxed) >> STAGE_BITS;
        self.turn.store((turn + 1) << STAGE_BITS | stage as u64, Ordering::Relaxed);
    }

    /// Says that something has arrived.
    pub(super) fn arrived(&self) {
        if self.stage() == Stage::Idle {
            self.enter(Stage::Head);
        }
    }

    /// Tells the task that waits for a body not to wait any longer.
    pub(super) fn set_late(&self) {
        self.is_late.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_late(&self) -> bool {
        self.is_late.load(Ordering::Relaxed)
    }
}

/// Looks at a [`Watch`] once in a while.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Time between two looks.
    pub(super) period: Duration,
    turn: u64,
    looks: u32,
}

impl Watcher {
    pub(super) fn new(period: Duration) -> Self {
        Self { period, turn: 0, looks: 0 }
    }

    /// Looks: the stage, and how long the connection has been in it at least.
    pub(super) fn look(&mut self, watch: &Watch) -> (Stage, Duration) {
        let turn = watch.turn.load(Ordering::Relaxed);
        if turn == self.turn {
            self.looks = self.looks.saturating_add(1);
        } else {
            (self.turn, self.looks) = (turn, 0);
        }
        (watch.stage(), self.period.saturating_mul(self.looks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_change_grows_old() {
        let (watch, mut watcher) = (Watch::default(), Watcher::new(Duration::from_secs(1)));
        assert_eq!(watcher.look(&watch), (Stage::Idle, Duration::from_secs(1)));
        assert_eq!(watcher.look(&watch), (Stage::Idle, Duration::from_secs(2)));
        watch.arrived();
        assert_eq!(watcher.look(&watch), (Stage::Head, Duration::ZERO));
        watch.arrived();
        assert_eq!(watcher.look(&watch), (Stage::Head, Duration::from_secs(1)), "a byte more is no progress");
        watch.enter(Stage::Answering);
        watch.enter(Stage::Idle);
        watch.arrived();
        assert_eq!(watcher.look(&watch), (Stage::Head, Duration::ZERO), "another request");
    }
}
