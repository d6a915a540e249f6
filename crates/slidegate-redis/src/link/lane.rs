//! One connection's task: collects what waits, makes a round trip, hands out the answers.
//!
//! While a round trip is under way, calls queue; when it is over, all of them go out together. An idle
//! connection sends a call at once. Nothing waits for company: there is no timer.

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
use super::ticket::Ticket;
use super::wire::{Lost, Target, Wire};
use crate::failure::{Failure, Meaning};
use crate::options::WAIT_MAX;

/// Calls that go out together; a message more may join them.
pub(crate) const BATCH_CALLS_MAX: usize = 256;
/// Bytes that go out together, likewise.
pub(super) const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Messages that wait for one connection. Who finds no room waits for it.
const QUEUE_MAX: usize = 1024;

/// How long a connection may be silent before it is given up. Long after the deadlines of all that wait for it: a
/// server that is slow is not made faster by new connections.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Pauses before connecting again.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// Pauses before asking again a server that is busy or loading.
const BUSY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// Where calls enter a lane. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct LaneHandle {
    pub(super) queue: mpsc::Sender<Vec<Ticket>>,
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
            silence: SILENCE_MIN.max(deadline * 2),
            reconnect: Backoff::new(RECONNECT.0, RECONNECT.1),
            busy: Backoff::new(BUSY.0, BUSY.1),
            pause: Duration::ZERO,
        };
        Self { queue: sender, status, task: tokio::spawn(lane.run(wire)) }
    }

    /// How long a call that enters now has to wait: not at all for company in the queue of an idle lane, as all of it
    /// goes out together.
    pub(super) fn load(&self) -> (bool, usize) {
        (self.status.busy.load(Ordering::Relaxed), QUEUE_MAX - self.queue.capacity())
    }

    /// What is wrong, if something is.
    pub(super) fn trouble(&self) -> Option<Box<str>> {
        self.status.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What callers see of a lane.
#[derive(Debug, Default)]
struct LaneStatus {
    /// A round trip is under way, or there is no connection.
    busy: AtomicBool,
    trouble: Mutex<Option<Box<str>>>,
}

impl LaneStatus {
    fn set_trouble(&self, trouble: Option<&str>) {
        let mut place = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if place.as_deref() != trouble {
            *place = trouble.map(Box::from);
        }
    }
}

/// The task.
struct Lane {
    target: Target,
    queue: mpsc::Receiver<Vec<Ticket>>,
    /// Taken from the queue, or to be sent again. Nobody has taken them.
    waiting: VecDeque<Ticket>,
    status: Arc<LaneStatus>,
    silence: Duration,
    reconnect: Backoff,
    busy: Backoff,
    /// Before the next round trip.
    pause: Duration,
}

/// The connection cannot be used any more.
struct Unusable;

impl Lane {
    /// Works until the other end of the queue is gone.
    async fn run(mut self, mut wire: Wire) {
        while self.work(&mut wire).await.is_err() {
            wire = self.connected().await;
        }
    }

    /// Makes round trips until the connection is lost, or nobody is left to ask.
    async fn work(&mut self, wire: &mut Wire) -> Result<(), Unusable> {
        loop {
            if self.waiting.is_empty() {
                self.status.busy.store(false, Ordering::Relaxed);
                tokio::select! {
                    biased;
                    message = self.queue.recv() => match message {
                        Some(tickets) => self.waiting.extend(tickets),
                        None => return Ok(()),
                    },
                    () = wire.closed() => return Err(Unusable),
                }
                self.status.busy.store(true, Ordering::Relaxed);
            }
            if !self.pause.is_zero() {
                tokio::select! {
                    () = wire.closed() => return Err(Unusable),
                    () = sleep(self.pause) => self.pause = Duration::ZERO,
                }
            }
            let batch = self.batch();
            self.exchange(wire, batch).await?;
        }
    }

    async fn connected(&mut self) -> Wire {
        self.status.busy.store(true, Ordering::Relaxed);
        loop {
            sleep(self.reconnect.pause()).await;
            match Wire::open(&self.target).await {
                Ok(wire) => return wire,
                Err(error) => self.status.set_trouble(Some(&error.to_string())),
            }
        }
    }

    /// What goes out next. From here on it may have been written.
    fn batch(&mut self) -> Vec<Ticket> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_CALLS_MAX && bytes < BATCH_BYTES_MAX {
            if self.waiting.is_empty() {
                let Ok(tickets) = self.queue.try_recv() else { break };
                self.waiting.extend(tickets);
            }
            let now = Instant::now();
            // The calls of one message stay together. One whose deadline has passed is not sent: without its ticket
            // the caller leaves, and learns that.
            for ticket in self.waiting.drain(..).filter(|ticket| now < ticket.deadline) {
                if ticket.take() {
                    bytes += ticket.command.bytes();
                    batch.push(ticket);
                }
            }
        }
        batch
    }

    /// A round trip, and more of them for the calls whose scripts Redis turns out not to know.
    async fn exchange(&mut self, wire: &mut Wire, mut batch: Vec<Ticket>) -> Result<(), Unusable> {
        let mut round = 0;
        while !batch.is_empty() {
            match wire.round_trip(&pipeline(&batch, round), self.silence_of(&batch)).await {
                Ok(replies) => batch = self.sort(batch, replies, round)?,
                Err(lost) => {
                    self.lose(batch, &lost);
                    return Err(Unusable);
                }
            }
            round += 1;
        }
        Ok(())
    }

    /// How long these calls may go without an answer before the connection is given up.
    fn silence_of(&self, batch: &[Ticket]) -> Duration {
        let now = Instant::now();
        let longest = batch.iter().map(|ticket| ticket.deadline.saturating_duration_since(now)).max();
        self.silence.max(longest.unwrap_or_default().saturating_mul(2).min(WAIT_MAX))
    }

    /// Hands out answers; what is to be sent again waits. Gives back the calls whose scripts Redis does not know.
    fn sort(&mut self, batch: Vec<Ticket>, replies: Vec<Value>, round: u32) -> Result<Vec<Ticket>, Unusable> {
        let (mut unknown, mut again) = (Vec::new(), None);
        // This server is not the one that we want: another may be found under its address.
        let mut elsewhere = false;
        for (ticket, reply) in batch.into_iter().zip(replies) {
            let Value::ServerError(error) = reply else {
                ticket.answer(Ok(reply));
                continue;
            };
            let failure = Failure::of_reply(&error);
            match failure.meaning {
                Meaning::SendText if round < ROUND_LAST && !ticket.is_gone() => unknown.push(ticket),
                Meaning::Later => {
                    self.status.set_trouble(Some(&failure.why));
                    let pause = *again.get_or_insert_with(|| self.busy.pause().max(BUSY.0));
                    if Instant::now() + pause >= ticket.deadline {
                        ticket.answer(Err(failure.into()));
                    } else if ticket.give_back() {
                        self.waiting.push_back(ticket);
                    }
                }
                Meaning::Elsewhere => {
                    self.status.set_trouble(Some(&failure.why));
                    elsewhere |= error.code() == "READONLY";
                    ticket.answer(Err(failure.into()));
                }
                Meaning::SendText | Meaning::Refused | Meaning::Ambiguous => {
                    ticket.answer(Err(failure.into()));
                }
            }
        }
        if let Some(pause) = again {
            self.pause = pause;
        } else if !elsewhere {
            self.busy.reset();
            self.reconnect.reset();
            self.status.set_trouble(None);
        }
        if elsewhere {
            self.waiting.extend(unknown.into_iter().filter(Ticket::give_back));
            return Err(Unusable);
        }
        Ok(unknown)
    }

    /// The connection broke, or fell silent. What it took nothing of waits for the next one.
    fn lose(&mut self, batch: Vec<Ticket>, lost: &Lost) {
        self.status.set_trouble(Some(&lost.why));
        for ticket in batch {
            if lost.sent {
                let why = format!("{}; see whether Redis was restarted", lost.why).into();
                ticket.answer(Err(StoreError::Ambiguous { why }));
            } else if ticket.give_back() {
                self.waiting.push_back(ticket);
            }
        }
    }
}
