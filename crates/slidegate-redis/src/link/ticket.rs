//! A call on its way: the caller holds one end, the connection the other.
//!
//! Both ends must agree on whether the call went out, whatever happens between them. Its state is one word that
//! both change in one step. The lane *takes* a call before it writes any of it, and gives it back when it is
//! known that it was not executed. A caller who *leaves* learns from the same step which it was: a call that
//! waits will never be sent, one that is taken may have been written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use redis::Value;
use slidegate::store::StoreError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::command::Command;

/// Nothing of it has been written, or it is known that it was not executed.
const WAITING: u8 = 0;
/// It may have been written.
const TAKEN: u8 = 1;
/// Its caller has left.
const GONE: u8 = 2;

pub(super) type Answer = Result<Value, StoreError>;

/// The connection's end of a call.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) command: Command,
    /// When its caller leaves.
    pub(super) deadline: Instant,
    state: Arc<AtomicU8>,
    answer: oneshot::Sender<Answer>,
}

/// The caller's end of a call. Dropping it is leaving.
#[derive(Debug)]
pub(super) struct Pending {
    state: Arc<AtomicU8>,
    pub(super) answer: oneshot::Receiver<Answer>,
}

/// Both ends of a new call.
pub(super) fn ticket(command: Command, deadline: Instant) -> (Ticket, Pending) {
    let (sender, receiver) = oneshot::channel();
    let state = Arc::new(AtomicU8::new(WAITING));
    let ticket = Ticket { command, deadline, state: Arc::clone(&state), answer: sender };
    (ticket, Pending { state, answer: receiver })
}

impl Ticket {
    /// To be called before anything of it is written; false if its caller has left and it must not be.
    #[must_use]
    pub(super) fn take(&self) -> bool {
        self.moved(WAITING, TAKEN)
    }

    /// To be called when it is known that it was not executed; false if its caller has left.
    #[must_use]
    pub(super) fn give_back(&self) -> bool {
        self.moved(TAKEN, WAITING)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.state.load(Ordering::Acquire) == GONE
    }

    pub(super) fn answer(self, answer: Answer) {
        // A caller who has left wants no answer.
        let _ = self.answer.send(answer);
    }

    fn moved(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Pending {
    /// Leaves; true if the call was not executed and will never be.
    pub(super) fn leave(&self) -> bool {
        self.state.swap(GONE, Ordering::AcqRel) == WAITING
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both() -> (Ticket, Pending) {
        ticket(Command::Scan { pattern: b"*".to_vec(), cursor: 0 }, Instant::now())
    }

    #[test]
    fn who_leaves_a_call_that_waits_knows_that_it_is_never_sent() {
        let (ticket, pending) = both();
        assert!(pending.leave());
        assert!(ticket.is_gone() && !ticket.take() && !ticket.give_back());
    }

    #[test]
    fn who_leaves_a_call_that_was_taken_does_not_know() {
        let (ticket, pending) = both();
        assert!(ticket.take());
        assert!(!pending.leave());
        assert!(!ticket.give_back() && !ticket.take(), "nobody sends it again");
    }

    #[test]
    fn what_was_given_back_can_be_taken_again_or_left() {
        let (ticket, pending) = both();
        assert!(ticket.take() && !ticket.take(), "nobody takes it twice");
        assert!(ticket.give_back() && ticket.take() && ticket.give_back());
        assert!(pending.leave());
        assert!(!ticket.take());
    }

    #[test]
    fn dropping_is_leaving() {
        let (ticket, pending) = both();
        drop(pending);
        assert!(!ticket.take());
        ticket.answer(Ok(Value::Nil));
    }

    #[test]
    fn both_ends_agree_whoever_is_first() {
        for _ in 0..2_000 {
            let (ticket, pending) = both();
            let (taken, unsent) = std::thread::scope(|scope| {
                let taken = scope.spawn(|| ticket.take());
                let unsent = scope.spawn(|| pending.leave());
                (taken.join().unwrap(), unsent.join().unwrap())
            });
            assert_ne!(taken, unsent);
        }
    }
}
