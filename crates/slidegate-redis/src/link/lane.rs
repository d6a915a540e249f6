//! One connection's task: collects what waits, makes a round trip, hands out the answers.
//!
//! While a round trip is under way, calls queue; when it is over, all of them go out together. An idle
//! connection sends a call at once. Nothing waits for company: there is no timer.
//!
//! The task takes a call the moment before it writes it. Until then the call is in the queue, whatever keeps the
//! task busy (a round trip, a lost connection, a pause because Redis is busy), and a caller whose deadline passes
//! knows that it was not executed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Value;
use slidegate::store::StoreError;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::command::{Naming, pipeline};
use super::ticket::Ticket;
use super::wire::{Lost, Target, Wire};
use crate::failure::{Failure, Meaning};
use crate::options::WAIT_MAX;

/// Calls that go out together; a message more may join them.
pub(crate) const BATCH_CALLS_MAX: usize = 256;
/// Bytes that go out together, likewise.
pub(super) const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Messages that wait for one connection. Who finds no room waits for it.
pub(super) const QUEUE_MAX: usize = 1024;

/// How long a connection may be silent before it is given up. Long after the deadlines of all that wait for it: a
/// server that is slow is not made faster by new connections.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// Pauses before connecting again.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));
/// Pauses before asking again a server that is busy or loading.
const BUSY: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));

/// What callers see of a lane.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// A round trip is under way, or there is no connection.
    pub(super) busy: AtomicBool,
    /// What is wrong, if something is.
    trouble: Mutex<Option<Box<str>>>,
}

impl Sight {
    pub(super) fn trouble(&self) -> Option<Box<str>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, trouble: Option<&str>) {
        let mut place = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if place.as_deref() != trouble {
            *place = trouble.map(Box::from);
        }
    }
}

/// The task.
pub(super) struct Lane {
    target: Target,
    queue: mpsc::Receiver<Vec<Ticket>>,
    /// Taken from the queue, or to be sent again. Nobody has taken them.
    waiting: VecDeque<Ticket>,
    sight: Arc<Sight>,
    silence: Duration,
    reconnect: Backoff,
    busy: Backoff,
    /// Before the next round trip.
    pause: Duration,
}

/// What a round trip has done to the connection.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Usable,
    Lost,
}

impl Lane {
    pub(super) fn new(
        target: Target,
        queue: mpsc::Receiver<Vec<Ticket>>,
        sight: Arc<Sight>,
        deadline: Duration,
    ) -> Self {
        Self {
            target,
            queue,
            waiting: VecDeque::new(),
            sight,
            silence: SILENCE_MIN.max(deadline * 2),
            reconnect: Backoff::new(RECONNECT.0, RECONNECT.1),
            busy: Backoff::new(BUSY.0, BUSY.1),
            pause: Duration::ZERO,
        }
    }

    /// Works until the other end of the queue is gone.
    pub(super) async fn run(mut self, wire: Wire) {
        let mut wire = wire;
        loop {
            match self.work(&mut wire).await {
                After::Usable => return,
                After::Lost => wire = self.connected().await,
            }
        }
    }

    /// Makes round trips until the connection is lost, or nobody is left to ask.
    async fn work(&mut self, wire: &mut Wire) -> After {
        loop {
            if self.waiting.is_empty() {
                self.sight.busy.store(false, Ordering::Relaxed);
                tokio::select! {
                    biased;
                    message = self.queue.recv() => match message {
                        Some(tickets) => self.waiting.extend(tickets),
                        None => return After::Usable,
                    },
                    () = wire.closed() => return After::Lost,
                }
                self.sight.busy.store(true, Ordering::Relaxed);
            }
            if !self.pause.is_zero() {
                tokio::select! {
                    () = wire.closed() => return After::Lost,
                    () = sleep(self.pause) => self.pause = Duration::ZERO,
                }
            }
            let batch = self.batch();
            if self.exchange(wire, batch).await == After::Lost {
                return After::Lost;
            }
        }
    }

    async fn connected(&mut self) -> Wire {
        self.sight.busy.store(true, Ordering::Relaxed);
        loop {
            sleep(self.reconnect.pause()).await;
            match Wire::open(&self.target).await {
                Ok(wire) => return wire,
                Err(error) => self.sight.set_trouble(Some(&error.to_string())),
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
    async fn exchange(&mut self, wire: &mut Wire, batch: Vec<Ticket>) -> After {
        let (mut batch, mut naming) = (batch, Naming::Hashes);
        while !batch.is_empty() {
            let before = wire.taken();
            let silence = self.silence_of(&batch);
            let replies = match timeout(silence, wire.round_trip(&pipeline(&batch, naming))).await {
                Ok(Ok(replies)) => replies,
                Ok(Err(lost)) => {
                    self.lose(batch, &lost);
                    return After::Lost;
                }
                Err(_) => {
                    let why = format!("the connection was silent for {silence:?}");
                    self.lose(batch, &Lost { why, sent: wire.taken() != before });
                    return After::Lost;
                }
            };
            let Sorted { unknown, elsewhere } = self.sort(batch, replies, naming);
            if elsewhere {
                self.waiting.extend(unknown.into_iter().filter(Ticket::give_back));
                return After::Lost;
            }
            batch = unknown;
            naming = naming.next().unwrap_or(naming);
        }
        After::Usable
    }

    /// How long these calls may go without an answer before the connection is given up.
    fn silence_of(&self, batch: &[Ticket]) -> Duration {
        let now = Instant::now();
        let longest = batch.iter().map(|ticket| ticket.deadline.saturating_duration_since(now)).max();
        self.silence.max(longest.unwrap_or_default().saturating_mul(2).min(WAIT_MAX))
    }

    /// Hands out answers; what is to be sent again waits.
    fn sort(&mut self, batch: Vec<Ticket>, replies: Vec<Value>, naming: Naming) -> Sorted {
        let mut sorted = Sorted { unknown: Vec::new(), elsewhere: false };
        let mut again = None;
        for (ticket, reply) in batch.into_iter().zip(replies) {
            let Value::ServerError(error) = reply else {
                ticket.answer(Ok(reply));
                continue;
            };
            let failure = Failure::of_reply(&error);
            match failure.meaning() {
                Meaning::SendText if naming.next().is_some() => {
                    if !ticket.is_gone() {
                        sorted.unknown.push(ticket);
                    }
                }
                Meaning::Later => {
                    self.sight.set_trouble(Some(failure.why()));
                    let pause = *again.get_or_insert_with(|| self.busy.pause().max(BUSY.0));
                    if Instant::now() + pause >= ticket.deadline {
                        ticket.answer(Err(failure.into()));
                    } else if ticket.give_back() {
                        self.waiting.push_back(ticket);
                    }
                }
                Meaning::Elsewhere => {
                    self.sight.set_trouble(Some(failure.why()));
                    sorted.elsewhere |= error.code() == "READONLY";
                    ticket.answer(Err(failure.into()));
                }
                Meaning::SendText | Meaning::Refused | Meaning::Ambiguous => {
                    ticket.answer(Err(failure.into()));
                }
            }
        }
        if let Some(pause) = again {
            self.pause = pause;
        } else if !sorted.elsewhere {
            self.busy.reset();
            self.reconnect.reset();
            self.sight.set_trouble(None);
        }
        sorted
    }

    /// The connection is gone. What it took nothing of waits for the next one.
    fn lose(&mut self, batch: Vec<Ticket>, lost: &Lost) {
        self.sight.set_trouble(Some(&lost.why));
        for ticket in batch {
            if lost.sent {
                ticket.answer(Err(StoreError::from(Failure::after_sending(&lost.why))));
            } else if ticket.give_back() {
                self.waiting.push_back(ticket);
            }
        }
    }
}

/// What is left of a round trip once its answers are handed out.
struct Sorted {
    /// Calls whose scripts Redis does not know.
    unknown: Vec<Ticket>,
    /// This server is not the one that we want: another may be found under its address.
    elsewhere: bool,
}
