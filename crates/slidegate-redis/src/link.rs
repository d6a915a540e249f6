//! The connection layer: calls go in, replies come out.
//!
//! ```text
//! call ---- queue ---- lane ---- wire ---- stream ---- Redis
//!           bounded    a task    RESP      TCP, TLS, Unix; counts what it takes
//! ```
//!
//! A few connections serve all callers of a process. Each has a task of its own, its lane, and calls that meet
//! there share round trips. The deadline belongs to the call and is kept here: it passes before the lane has taken
//! the call ([`StoreError::Unavailable`], it will not be sent any more) or after ([`StoreError::Ambiguous`]).
//!
//! Rejected: the crate's own connection manager. It cannot say whether a command was written before its connection
//! broke, so every idle connection that a server has closed would end in an ambiguous call.

mod backoff;
mod command;
mod error;
mod lane;
mod stream;
mod ticket;
mod version;
mod wire;

#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Value, from_redis_value};
use slidegate::store::StoreError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

pub(crate) use command::Call;
pub use error::ConnectError;

use crate::failure::Failure;
use crate::options::RedisOptions;
use command::Command;
use lane::{BATCH_BYTES_MAX, BATCH_CALLS_MAX, Lane, QUEUE_MAX, Sight};
use ticket::{Answer, Pending, Ticket, ticket};
use wire::{Target, Wire};

/// The way to one Redis. Dropping it closes its connections.
#[derive(Debug)]
pub(crate) struct Link {
    lanes: Box<[Entrance]>,
    next: AtomicUsize,
    deadline: Duration,
}

/// Where calls enter a lane.
#[derive(Debug)]
struct Entrance {
    queue: mpsc::Sender<Vec<Ticket>>,
    sight: Arc<Sight>,
    task: JoinHandle<()>,
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// Opens all connections. Later they are opened anew by themselves, whenever one is lost.
    pub(crate) async fn connect(options: &RedisOptions) -> Result<Self, ConnectError> {
        let target = Target::new(options)?;
        let mut lanes = Vec::with_capacity(options.connections);
        for _ in 0..options.connections {
            let wire = Wire::open(&target).await?;
            let (sender, receiver) = mpsc::channel(QUEUE_MAX);
            let sight = Arc::new(Sight::default());
            let lane = Lane::new(target.clone(), receiver, Arc::clone(&sight), options.deadline);
            lanes.push(Entrance { queue: sender, sight, task: tokio::spawn(lane.run(wire)) });
        }
        Ok(Self { lanes: lanes.into(), next: AtomicUsize::new(0), deadline: options.deadline })
    }

    /// Calls a script.
    pub(crate) async fn call(&self, call: Call) -> Result<Value, StoreError> {
        let mut answers = self.ask(vec![Command::Script(call)]).await;
        answers.pop().unwrap_or_else(|| Err(Failure::not_understood("a script").into()))
    }

    /// Calls scripts one after the other, in one round trip unless there are very many; each round trip has the
    /// deadline to itself. Every call has an answer of its own, in their order.
    pub(crate) async fn call_all(&self, calls: Vec<Call>) -> Vec<Result<Value, StoreError>> {
        let mut answers = Vec::with_capacity(calls.len());
        let mut commands = Vec::new();
        let mut bytes = 0;
        for call in calls {
            let command = Command::Script(call);
            bytes += command.bytes();
            commands.push(command);
            if commands.len() >= BATCH_CALLS_MAX || bytes >= BATCH_BYTES_MAX {
                answers.extend(self.ask(std::mem::take(&mut commands)).await);
                bytes = 0;
            }
        }
        if !commands.is_empty() {
            answers.extend(self.ask(commands).await);
        }
        answers
    }

    /// One step of a search for keys: the next cursor, 0 at the end, and names. A name may come more than once.
    pub(crate) async fn scan(&self, pattern: &[u8], cursor: u64) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let mut answers = self.ask(vec![Command::Scan { pattern: pattern.to_vec(), cursor }]).await;
        let reply = match answers.pop() {
            Some(Ok(reply)) => from_redis_value(reply).map_err(|_| Failure::not_understood("SCAN").into()),
            Some(Err(error)) => Err(error),
            None => Err(Failure::not_understood("SCAN").into()),
        };
        // Whoever only reads charges nothing, whether it was done or not.
        reply.map_err(|error| match error {
            StoreError::Ambiguous { why } => StoreError::Unavailable { why },
            other => other,
        })
    }

    /// Sends commands together, and waits for their answers until the deadline.
    async fn ask(&self, commands: Vec<Command>) -> Vec<Answer> {
        let deadline = Instant::now() + self.deadline;
        let mut expiry = pin!(sleep_until(deadline));
        let (tickets, pending): (Vec<_>, Vec<_>) =
            commands.into_iter().map(|command| ticket(command, deadline)).unzip();
        let lane = self.least_busy();
        tokio::select! {
            biased;
            // If it could not be sent the tickets are gone, and so are the answers to wait for.
            _ = lane.queue.send(tickets) => {},
            () = &mut expiry => {},
        }
        let mut answers = Vec::with_capacity(pending.len());
        for pending in pending {
            answers.push(self.answer(lane, pending, expiry.as_mut()).await);
        }
        answers
    }

    async fn answer(&self, lane: &Entrance, mut pending: Pending, expiry: Pin<&mut Sleep>) -> Answer {
        let answered = tokio::select! {
            biased;
            answer = &mut pending.answer => answer.ok(),
            () = expiry => None,
        };
        if let Some(answer) = answered {
            return answer;
        }
        let unsent = pending.leave();
        // It may have come in this very moment.
        if let Ok(answer) = pending.answer.try_recv() {
            return answer;
        }
        Err(self.expired(lane, unsent))
    }

    fn expired(&self, lane: &Entrance, unsent: bool) -> StoreError {
        let after = self.deadline;
        let trouble = lane.sight.trouble();
        if unsent {
            let why = trouble.unwrap_or_else(|| {
                "earlier calls still wait for Redis; see its SLOWLOG, or raise the deadline or the connections".into()
            });
            StoreError::Unavailable { why: format!("nothing was sent within {after:?}: {why}").into() }
        } else {
            let why = "no reply came in time; see Redis's SLOWLOG, or raise the deadline";
            StoreError::Ambiguous { why: format!("it was sent, and {after:?} have passed: {why}").into() }
        }
    }

    /// A lane that is idle, else the one with the shortest queue; in turn among equals.
    fn least_busy(&self) -> &Entrance {
        let (start, lanes) = (self.next.fetch_add(1, Ordering::Relaxed), self.lanes.len());
        let in_turn = (0..lanes).map(|offset| &self.lanes[start.wrapping_add(offset) % lanes]);
        in_turn.min_by_key(|lane| lane.load()).expect("a link has at least one connection")
    }
}

impl Entrance {
    /// How long whoever enters now has to wait: not at all for company in the queue of an idle lane, as all of it goes
    /// out together.
    fn load(&self) -> (bool, usize) {
        (self.sight.busy.load(Ordering::Relaxed), QUEUE_MAX - self.queue.capacity())
    }
}
