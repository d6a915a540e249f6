//! A call between its caller and a lane, with one end for each.
//!
//! Both ends must agree on whether the call was sent. Its state is one atomic word. The lane *starts* a call before it
//! writes any of it, and *requeues* it when Redis certainly did not execute it. A caller that *cancels* learns from the
//! same compare-and-swap which it was: a queued call is never sent, one in flight may have been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use redis::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::command::Command;
use crate::call_error::CallError;

/// Nothing of it was written, or Redis certainly did not execute it.
const QUEUED: u8 = 0;
/// It may have been written.
const IN_FLIGHT: u8 = 1;
/// Its caller has cancelled it.
const CANCELLED: u8 = 2;

pub(crate) type CallResult = Result<Value, CallError>;

/// The lane's end of a call.
#[derive(Debug)]
pub(super) struct QueuedCall {
    pub(super) command: Command,
    /// When its caller cancels it.
    pub(super) deadline: Instant,
    state: Arc<AtomicU8>,
    result: oneshot::Sender<CallResult>,
}

/// The caller's end of a call. Dropping it cancels the call.
#[derive(Debug)]
pub(super) struct PendingCall {
    state: Arc<AtomicU8>,
    pub(super) result: oneshot::Receiver<CallResult>,
}

/// Both ends of a new call.
pub(super) fn queued_call(command: Command, deadline: Instant) -> (QueuedCall, PendingCall) {
    let (sender, receiver) = oneshot::channel();
    let state = Arc::new(AtomicU8::new(QUEUED));
    let call = QueuedCall { command, deadline, state: Arc::clone(&state), result: sender };
    (call, PendingCall { state, result: receiver })
}

impl QueuedCall {
    /// Must be called before anything of it is written. False if it was cancelled: then it must not be written.
    #[must_use]
    pub(super) fn start(&self) -> bool {
        self.change_state(QUEUED, IN_FLIGHT)
    }

    /// Must be called only if Redis certainly did not execute it. False if it was cancelled.
    #[must_use]
    pub(super) fn requeue(&self) -> bool {
        self.change_state(IN_FLIGHT, QUEUED)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.state.load(Ordering::Acquire) == CANCELLED
    }

    pub(super) fn finish(self, result: CallResult) {
        // A cancelled call has no receiver.
        let _ = self.result.send(result);
    }

    fn change_state(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl PendingCall {
    /// Cancels the call; true if it was not executed and never will be.
    pub(super) fn cancel(&self) -> bool {
        self.state.swap(CANCELLED, Ordering::AcqRel) == QUEUED
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (QueuedCall, PendingCall) {
        queued_call(Command::Scan { pattern: b"*".to_vec(), cursor: 0 }, Instant::now())
    }

    #[test]
    fn a_cancelled_call_that_was_queued_is_never_sent() {
        let (call, pending) = both();
        assert!(pending.cancel());
        assert!(call.is_cancelled() && !call.start() && !call.requeue());
    }

    #[test]
    fn a_cancelled_call_in_flight_may_have_been_sent() {
        let (call, pending) = both();
        assert!(call.start());
        assert!(!pending.cancel());
        assert!(!call.requeue() && !call.start(), "it is never sent again");
    }

    #[test]
    fn a_requeued_call_can_be_started_again_or_cancelled() {
        let (call, pending) = both();
        assert!(call.start() && !call.start(), "it is not started twice");
        assert!(call.requeue() && call.start() && call.requeue());
        assert!(pending.cancel());
        assert!(!call.start());
    }

    #[test]
    fn dropping_cancels() {
        let (call, pending) = both();
        drop(pending);
        assert!(!call.start());
        call.finish(Ok(Value::Nil));
    }

    #[test]
    fn both_ends_agree_on_whether_a_call_was_started() {
        for _ in 0..2_000 {
            let (call, pending) = both();
            let (started, unsent) = std::thread::scope(|scope| {
                let started = scope.spawn(|| call.start());
                let unsent = scope.spawn(|| pending.cancel());
                (started.join().unwrap(), unsent.join().unwrap())
            });
            assert_ne!(started, unsent);
        }
    }
}
