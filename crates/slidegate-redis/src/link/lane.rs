//! The task of one connection: collects queued calls, makes a round trip, hands out the replies.
//!
//! While a round trip is in flight, calls queue. After it, all of them are sent together. An idle connection sends a
//! call at once: no timer collects batches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;
use super::command::{ROUND_LAST, pipeline};
use super::queued_call::QueuedCall;
use super::wire::{RoundTripError, Target, Wire};
use crate::call_error::{CallError, ErrorClass};
use crate::options::WAIT_MAX;

/// Calls that are sent together. The last message of a batch may exceed it.
pub(crate) const BATCH_CALLS_MAX: usize = 256;
/// Bytes that are sent together, likewise.
pub(super) const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Messages that queue for one connection. Further callers wait: backpressure.
const QUEUE_MAX: usize = 1024;

/// How long a connection may go without a reply before it is closed, at least. Well above the deadlines of its calls:
/// new connections do not make a slow server faster.
const REPLY_TIMEOUT_MIN: Duration = Duration::from_secs(1);
/// First and longest pause before a reconnect.
const RECONNECT_PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// First and longest pause before a retry on a server that is busy or loading.
const BUSY_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// The sending end of a lane's queue. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct LaneHandle {
    pub(super) queue: mpsc::Sender<Vec<QueuedCall>>,
    status: Arc<LaneStatus>,
    task: JoinHandle<()>,
}

impl Drop for LaneHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LaneHandle {
    /// Starts the task of a connection.
    pub(super) fn start(target: Target, wire: Wire, deadline: Duration) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let status = Arc::new(LaneStatus::default());
        let lane = Lane {
            target,
            queue,
            waiting: VecDeque::new(),
            status: Arc::clone(&status),
            reply_timeout: REPLY_TIMEOUT_MIN.max(deadline * 2),
            reconnect_backoff: Backoff::new(RECONNECT_PAUSES.0, RECONNECT_PAUSES.1),
            busy_backoff: Backoff::new(BUSY_PAUSES.0, BUSY_PAUSES.1),
            pause: Duration::ZERO,
        };
        Self { queue: sender, status, task: tokio::spawn(lane.run(wire)) }
    }

    /// The load of the lane, to be compared: whether it is busy, and its queued messages. The calls of an idle lane are
    /// sent together at once.
    pub(super) fn load(&self) -> (bool, usize) {
        (self.status.busy.load(Ordering::Relaxed), QUEUE_MAX - self.queue.capacity())
    }

    /// The last error, if the lane has not recovered from it.
    pub(super) fn last_error(&self) -> Option<Box<str>> {
        self.status.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The status of a lane, for its callers.
#[derive(Debug, Default)]
struct LaneStatus {
    /// A round trip is in flight, or there is no connection.
    busy: AtomicBool,
    last_error: Mutex<Option<Box<str>>>,
}

impl LaneStatus {
    fn set_last_error(&self, last_error: Option<&str>) {
        let mut current = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_deref() != last_error {
            *current = last_error.map(Box::from);
        }
    }
}

/// The state of the task.
struct Lane {
    target: Target,
    queue: mpsc::Receiver<Vec<QueuedCall>>,
    /// Received from the queue, or to be retried. None of them is in flight.
    waiting: VecDeque<QueuedCall>,
    status: Arc<LaneStatus>,
    reply_timeout: Duration,
    reconnect_backoff: Backoff,
    busy_backoff: Backoff,
    /// Before the next round trip.
    pause: Duration,
}

/// The connection is lost.
struct Disconnected;

impl Lane {
    /// Works until the sending end of the queue is dropped.
    async fn run(mut self, mut wire: Wire) {
        while self.work(&mut wire).await.is_err() {
            wire = self.reconnect().await;
        }
    }

    /// Makes round trips until the connection is lost, or the sending end of the queue is dropped.
    async fn work(&mut self, wire: &mut Wire) -> Result<(), Disconnected> {
        loop {
            if self.waiting.is_empty() {
                self.status.busy.store(false, Ordering::Relaxed);
                tokio::select! {
                    biased;
                    message = self.queue.recv() => match message {
                        Some(calls) => self.waiting.extend(calls),
                        None => return Ok(()),
                    },
                    () = wire.closed() => return Err(Disconnected),
                }
                self.status.busy.store(true, Ordering::Relaxed);
            }
            if !self.pause.is_zero() {
                tokio::select! {
                    () = wire.closed() => return Err(Disconnected),
                    () = sleep(self.pause) => self.pause = Duration::ZERO,
                }
            }
            let batch = self.batch();
            self.exchange(wire, batch).await?;
        }
    }

    async fn reconnect(&mut self) -> Wire {
        self.status.busy.store(true, Ordering::Relaxed);
        loop {
            sleep(self.reconnect_backoff.pause()).await;
            match Wire::open(&self.target).await {
                Ok(wire) => return wire,
                Err(error) => self.status.set_last_error(Some(&error.cause())),
            }
        }
    }

    /// Starts the calls of the next round trip.
    fn batch(&mut self) -> Vec<QueuedCall> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_CALLS_MAX && bytes < BATCH_BYTES_MAX {
            if self.waiting.is_empty() {
                let Ok(calls) = self.queue.try_recv() else { break };
                self.waiting.extend(calls);
            }
            let now = Instant::now();
            // The calls of one message stay together. A call whose deadline has passed is dropped, which its caller
            // sees as not sent.
            for call in self.waiting.drain(..).filter(|call| now < call.deadline) {
                if call.start() {
                    bytes += call.command.bytes();
                    batch.push(call);
                }
            }
        }
        batch
    }

    /// A round trip, and more of them for the calls whose scripts Redis does not know.
    async fn exchange(&mut self, wire: &mut Wire, mut batch: Vec<QueuedCall>) -> Result<(), Disconnected> {
        let mut round = 0;
        while !batch.is_empty() {
            match wire.round_trip(&pipeline(&batch, round), self.reply_timeout_of(&batch)).await {
                Ok(replies) => batch = self.dispatch(batch, replies, round)?,
                Err(error) => {
                    self.fail(batch, &error);
                    return Err(Disconnected);
                }
            }
            round += 1;
        }
        Ok(())
    }

    /// How long these calls may go without a reply before the connection is closed.
    fn reply_timeout_of(&self, batch: &[QueuedCall]) -> Duration {
        let now = Instant::now();
        let longest = batch.iter().map(|call| call.deadline.saturating_duration_since(now)).max();
        self.reply_timeout.max(longest.unwrap_or_default().saturating_mul(2).min(WAIT_MAX))
    }

    /// Hands out replies and requeues calls for a retry. Returns the calls whose scripts Redis does not know.
    fn dispatch(
        &mut self,
        batch: Vec<QueuedCall>,
        replies: Vec<Value>,
        round: u32,
    ) -> Result<Vec<QueuedCall>, Disconnected> {
        let (mut unknown, mut retry_pause) = (Vec::new(), None);
        // A replica: a new connection to the same address may reach the new primary.
        let mut replica = false;
        for (call, reply) in batch.into_iter().zip(replies) {
            let Value::ServerError(error) = reply else {
                call.finish(Ok(reply));
                continue;
            };
            let failed = CallError::from_reply(&error);
            match failed.class {
                ErrorClass::UnknownScript if round < ROUND_LAST && !call.is_cancelled() => unknown.push(call),
                ErrorClass::Busy => {
                    self.status.set_last_error(Some(&failed.why));
                    let pause =
                        *retry_pause.get_or_insert_with(|| self.busy_backoff.pause().max(BUSY_PAUSES.0));
                    if Instant::now() + pause >= call.deadline {
                        call.finish(Err(failed.into()));
                    } else if call.requeue() {
                        self.waiting.push_back(call);
                    }
                }
                ErrorClass::WrongServer => {
                    self.status.set_last_error(Some(&failed.why));
                    replica |= error.code() == "READONLY";
                    call.finish(Err(failed.into()));
                }
                ErrorClass::UnknownScript | ErrorClass::Refused | ErrorClass::Ambiguous => {
                    call.finish(Err(failed.into()));
                }
            }
        }
        if let Some(pause) = retry_pause {
            self.pause = pause;
        } else if !replica {
            self.busy_backoff.reset();
            self.reconnect_backoff.reset();
            self.status.set_last_error(None);
        }
        if replica {
            self.waiting.extend(unknown.into_iter().filter(QueuedCall::requeue));
            return Err(Disconnected);
        }
        Ok(unknown)
    }

    /// Fails the calls of a lost connection. Those of which nothing was written are requeued for the next one.
    fn fail(&mut self, batch: Vec<QueuedCall>, error: &RoundTripError) {
        self.status.set_last_error(Some(&error.why));
        for call in batch {
            if error.sent {
                let why = format!("{}; see whether Redis was restarted", error.why).into();
                call.finish(Err(StoreError::Ambiguous { why }));
            } else if call.requeue() {
                self.waiting.push_back(call);
            }
        }
    }
}
