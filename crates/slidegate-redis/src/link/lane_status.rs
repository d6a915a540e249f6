//! What callers see of a lane: what it does, and its last error.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// What a lane does, the best for a new call first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Idle,
    /// A round trip is in flight.
    Busy,
    /// A connection is opened, and calls wait for it.
    Connecting,
    /// The last try to connect has failed, and calls are answered at once.
    Failing,
}

/// The status of a lane, for its callers.
#[derive(Debug)]
pub(super) struct LaneStatus {
    stage: AtomicU8,
    last_error: Mutex<Option<Box<str>>>,
}

impl Default for LaneStatus {
    fn default() -> Self {
        Self { stage: AtomicU8::new(Stage::Connecting as u8), last_error: Mutex::default() }
    }
}

impl LaneStatus {
    pub(super) fn stage(&self) -> Stage {
        let stages = [Stage::Idle, Stage::Busy, Stage::Connecting, Stage::Failing];
        stages[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    pub(super) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// The last error, if the lane has not recovered from it.
    pub(super) fn last_error(&self) -> Option<Box<str>> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_last_error(&self, last_error: Option<&str>) {
        let mut current = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_deref() != last_error {
            *current = last_error.map(Box::from);
        }
    }
}
