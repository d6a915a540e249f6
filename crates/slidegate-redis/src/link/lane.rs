//! The task of one connection: collects queued calls, makes a round trip, hands out the replies.
//!
//! While a round trip is in flight, calls queue. After it, all of them are sent together. An idle connection sends a
//! call at once: no timer collects batches.
//!
//! A lost connection is opened again with exponential backoff. Calls wait for the first try, each until its deadline.
//! Once a try has failed, they are answered at once until a try succeeds: a call to a Redis that is down must not take
//! its whole deadline. The first connection of a lazy link is opened in the same way.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::backoff::Backoff;
use super::command::{ROUND_LAST, pipeline};
use super::error::ConnectError;
use super::lane_status::{LaneStatus, Stage};
use super::queued_call::QueuedCall;
use super::target::Source;
use super::wire::{RoundTripError, Wire};
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
    /// Starts the task of a connection, which opens it unless it is open already.
    pub(super) fn start(source: Arc<Source>, wire: Option<Wire>, deadline: Duration) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE_MAX);
        let status = Arc::new(LaneStatus::default());
        let lane = Lane {
            source,
            queue,
            waiting: VecDeque::new(),
            status: Arc::clone(&status),
            reply_timeout: REPLY_TIMEOUT_MIN.max(deadline * 2),
            reconnect_backoff: Backoff::new(RECONNECT_PAUSES.0, RECONNECT_PAUSES.1),
            busy_backoff: Backoff::new(BUSY_PAUSES.0, BUSY_PAUSES.1),
            pause: Duration::ZERO,
            failing: None,
            was_replica: false,
        };
        Self { queue: sender, status, task: tokio::spawn(lane.run(wire)) }
    }

    /// The load of the lane, to be compared: its stage, and its queued messages. The calls of an idle lane are sent
    /// together at once.
    pub(super) fn load(&self) -> (Stage, usize) {
        (self.status.stage(), QUEUE_MAX - self.queue.capacity())
    }

    /// Whether the first try to connect is under way, or the first since the connection was lost.
    pub(super) fn is_connecting(&self) -> bool {
        self.status.stage() == Stage::Connecting
    }

    /// Whether its task has ended, which no call ends: its runtime has.
    pub(super) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// The last error, if the lane has not recovered from it.
    pub(super) fn last_error(&self) -> Option<Box<str>> {
        self.status.last_error()
    }
}

/// The state of the task.
struct Lane {
    source: Arc<Source>,
    queue: mpsc::Receiver<Vec<QueuedCall>>,
    /// Received from the queue, or to be retried. None of them is in flight.
    waiting: VecDeque<QueuedCall>,
    status: Arc<LaneStatus>,
    reply_timeout: Duration,
    reconnect_backoff: Backoff,
    busy_backoff: Backoff,
    /// Before the next round trip.
    pause: Duration,
    /// What calls are answered with at once while there is no connection.
    failing: Option<CallError>,
    /// The last server was a replica: another one need not be tried for the same call.
    was_replica: bool,
}

/// The connection is lost.
struct Disconnected;

impl Lane {
    /// Works until the sending end of the queue is dropped.
    async fn run(mut self, mut wire: Option<Wire>) {
        loop {
            let Some(mut connected) = (match wire.take() {
                Some(wire) => Some(wire),
                None => self.connect().await,
            }) else {
                return;
            };
            if self.work(&mut connected).await.is_ok() {
                return;
            }
        }
    }

    /// Makes round trips until the connection is lost, or the sending end of the queue is dropped.
    async fn work(&mut self, wire: &mut Wire) -> Result<(), Disconnected> {
        self.status.set_stage(Stage::Busy);
        loop {
            if self.waiting.is_empty() {
                self.status.set_stage(Stage::Idle);
                tokio::select! {
                    biased;
                    message = self.queue.recv() => match message {
                        Some(calls) => self.waiting.extend(calls),
                        None => return Ok(()),
                    },
                    () = wire.closed() => return Err(Disconnected),
                }
                self.status.set_stage(Stage::Busy);
            }
            if !self.pause.is_zero() {
                tokio::select! {
                    () = wire.closed() => return Err(Disconnected),
                    () = sleep(self.pause) => self.pause = Duration::ZERO,
                }
            }
            if !self.source.is_current(wire) {
                return Err(Disconnected);
            }
            let batch = self.batch();
            self.exchange(wire, batch).await?;
        }
    }

    /// Connects, with exponential backoff. `None` if the sending end of the queue is dropped meanwhile.
    async fn connect(&mut self) -> Option<Wire> {
        let mut has_broken = false;
        loop {
            let stage = if self.failing.is_some() { Stage::Failing } else { Stage::Connecting };
            self.status.set_stage(stage);
            let waiting = std::mem::take(&mut self.waiting);
            self.waiting = self.answer_while_failing(waiting);
            let (pause, source) = (self.reconnect_backoff.pause(), Arc::clone(&self.source));
            let mut opening = pin!(async move {
                sleep(pause).await;
                source.open().await
            });
            let opened = loop {
                tokio::select! {
                    biased;
                    opened = &mut opening => break opened,
                    // Calls that wait for the first try stay in the queue: backpressure.
                    message = self.queue.recv(), if self.failing.is_some() => {
                        self.answer_while_failing(message?);
                    }
                }
            };
            match opened {
                Ok(wire) => {
                    self.failing = None;
                    // A replica would look well until the first write.
                    if !self.was_replica {
                        self.status.set_last_error(None);
                    }
                    return Some(wire);
                }
                Err(error) => {
                    let call_error = error.call_error();
                    self.status.set_last_error(Some(&call_error.why));
                    // A connection may be lost in the handshake as it may later: that is no failed try, the first time.
                    let broke = matches!(error, ConnectError::Broken { .. }) && !has_broken;
                    has_broken |= broke;
                    self.failing = (!broke).then_some(call_error);
                }
            }
        }
    }

    /// Answers calls that need not wait for a connection; returns the others.
    fn answer_while_failing<Calls: Default + IntoIterator<Item = QueuedCall>>(&self, calls: Calls) -> Calls {
        let Some(error) = &self.failing else { return calls };
        for call in calls {
            call.finish(Err(error.clone()));
        }
        Calls::default()
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
        let (mut unknown, mut retry_pause, mut replica) = (Vec::new(), None, None);
        let mut replies = replies.into_iter();
        for call in batch {
            // As many replies as commands: a round trip ensures it.
            let Some(reply) = replies.nth(call.command.replies_before()) else { break };
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
                        call.finish(Err(failed));
                    } else if call.requeue() {
                        self.waiting.push_back(call);
                    }
                }
                ErrorClass::Replica => {
                    self.status.set_last_error(Some(&failed.why));
                    replica = Some(failed.clone());
                    if self.was_replica {
                        call.finish(Err(failed));
                    } else if call.requeue() {
                        self.waiting.push_back(call);
                    }
                }
                _ => call.finish(Err(failed)),
            }
        }
        if let Some(replica) = replica {
            // A new connection may reach the new primary. The second replica in a row is an answer.
            self.failing = self.was_replica.then_some(replica);
            self.was_replica = true;
            self.waiting.extend(unknown.into_iter().filter(QueuedCall::requeue));
            return Err(Disconnected);
        }
        if let Some(pause) = retry_pause {
            self.pause = pause;
        } else {
            self.was_replica = false;
            self.busy_backoff.reset();
            self.reconnect_backoff.reset();
            self.status.set_last_error(None);
        }
        Ok(unknown)
    }

    /// Fails the calls of a lost connection. Those of which nothing was written are requeued for the next one.
    fn fail(&mut self, batch: Vec<QueuedCall>, error: &RoundTripError) {
        let why = format!("{}; see whether Redis was restarted or hangs", error.why);
        self.status.set_last_error(Some(&why));
        for call in batch {
            if error.sent {
                call.finish(Err(CallError::ambiguous(&*why)));
            } else if call.requeue() {
                self.waiting.push_back(call);
            }
        }
    }
}
