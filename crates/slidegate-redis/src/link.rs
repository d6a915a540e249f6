//! The connection layer: calls go in, replies come out.
//!
//! ```text
//! call ---- queue ---- lane ---- wire ---- stream ---- Redis
//!           bounded    a task    RESP      TCP, TLS, Unix
//! ```
//!
//! A few connections serve all callers of a process. Each has a task of its own, its lane, and calls that meet
//! there share round trips. Every call has a deadline, which is kept here: it passes before the lane has taken the
//! call ([`StoreError::Unavailable`], it will not be sent any more) or after ([`StoreError::Ambiguous`]).
//!
//! Rejected: the crate's own connection manager. It cannot say whether a command was written before its connection
//! broke, so every idle connection that a server has closed would end in an ambiguous call.

mod backoff;
mod command;
mod error;
mod lane;
mod stream;
mod ticket;
mod wire;

#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as StdInstant};

use redis::{Value, from_redis_value};
use slidegate::store::StoreError;
use tokio::time::{Instant, Sleep, sleep_until};

pub(crate) use command::ScriptCall;
pub use error::{ConnectError, OpenError};
pub(crate) use lane::BATCH_CALLS_MAX;

use crate::failure::Failure;
use crate::options::RedisOptions;
use command::Command;
use lane::{BATCH_BYTES_MAX, LaneHandle};
use ticket::{Answer, Pending, ticket};
use wire::{Target, Wire};

/// The way to one Redis. Dropping it closes its connections.
#[derive(Debug)]
pub(crate) struct Link {
    lanes: Box<[LaneHandle]>,
    next: AtomicUsize,
    /// How long a call may take that brings no deadline of its own.
    wait_default: Duration,
}

/// Until when a caller waits, for a call or for all calls of a batch.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    called: Instant,
    at: Instant,
}

impl Deadline {
    /// From the call to the deadline, in whole milliseconds, rounded up; zero if it was called too late.
    fn wait(self) -> Duration {
        let wait = self.at.saturating_duration_since(self.called);
        let part = wait.subsec_nanos() % 1_000_000;
        if part == 0 { wait } else { wait + Duration::from_nanos(u64::from(1_000_000 - part)) }
    }
}

impl Link {
    /// Opens all connections. Later they are opened anew by themselves, whenever one is lost.
    pub(crate) async fn connect(options: &RedisOptions) -> Result<Self, ConnectError> {
        let target = Target::new(options)?;
        let mut lanes = Vec::with_capacity(options.connections);
        for _ in 0..options.connections {
            let wire = Wire::open(&target).await?;
            lanes.push(LaneHandle::start(target.clone(), wire, options.deadline));
        }
        Ok(Self { lanes: lanes.into(), next: AtomicUsize::new(0), wait_default: options.deadline })
    }

    /// Calls a script. Without a deadline that of the options holds, counted from now.
    pub(crate) async fn call(
        &self,
        until: Option<StdInstant>,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        self.ask_one(until, Command::Script(call)).await
    }

    /// Calls scripts one after the other, in one round trip unless there are very many, with one deadline for all of
    /// them. Every call has an answer of its own, in their order.
    pub(crate) async fn call_all(
        &self,
        until: Option<StdInstant>,
        calls: Vec<ScriptCall>,
    ) -> Vec<Result<Value, StoreError>> {
        let deadline = self.deadline(until);
        let mut answers = Vec::with_capacity(calls.len());
        let mut commands = Vec::new();
        let mut bytes = 0;
        for call in calls {
            let command = Command::Script(call);
            bytes += command.bytes();
            commands.push(command);
            if commands.len() >= BATCH_CALLS_MAX || bytes >= BATCH_BYTES_MAX {
                answers.extend(self.ask(deadline, std::mem::take(&mut commands)).await);
                bytes = 0;
            }
        }
        if !commands.is_empty() {
            answers.extend(self.ask(deadline, commands).await);
        }
        answers
    }

    /// One step of a search for keys: the next cursor, 0 at the end, and names. A name may come more than once.
    pub(crate) async fn scan(
        &self,
        until: Option<StdInstant>,
        pattern: &[u8],
        cursor: u64,
    ) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let scan = Command::Scan { pattern: pattern.to_vec(), cursor };
        let understood = |reply| from_redis_value(reply).map_err(|_| Failure::not_understood("SCAN").into());
        // A search charges nothing, whether it was done or not.
        self.ask_one(until, scan).await.and_then(understood).map_err(|error| match error {
            StoreError::Ambiguous { why } => StoreError::Unavailable { why },
            other => other,
        })
    }

    async fn ask_one(&self, until: Option<StdInstant>, command: Command) -> Answer {
        let mut answers = self.ask(self.deadline(until), vec![command]).await;
        answers.pop().expect("every command has an answer")
    }

    /// At `until`, or if the call brings none after the wait of the options.
    fn deadline(&self, until: Option<StdInstant>) -> Deadline {
        let called = Instant::now();
        Deadline { called, at: until.map_or_else(|| called + self.wait_default, Instant::from_std) }
    }

    /// Sends commands together, and waits for their answers until the deadline. What is past it is not sent.
    async fn ask(&self, deadline: Deadline, commands: Vec<Command>) -> Vec<Answer> {
        let lane = self.least_busy();
        if Instant::now() >= deadline.at {
            return commands.iter().map(|_| Err(expired(lane, deadline, true))).collect();
        }
        let mut expiry = pin!(sleep_until(deadline.at));
        let (tickets, pending): (Vec<_>, Vec<_>) =
            commands.into_iter().map(|command| ticket(command, deadline.at)).unzip();
        tokio::select! {
            biased;
            // If it could not be sent the tickets are gone, and so are the answers to wait for.
            _ = lane.queue.send(tickets) => {},
            () = &mut expiry => {},
        }
        let mut answers = Vec::with_capacity(pending.len());
        for pending in pending {
            answers.push(answer(lane, pending, deadline, expiry.as_mut()).await);
        }
        answers
    }

    /// A lane that is idle, else the one with the shortest queue; in turn among equals.
    fn least_busy(&self) -> &LaneHandle {
        let (start, lanes) = (self.next.fetch_add(1, Ordering::Relaxed), self.lanes.len());
        let in_turn = (0..lanes).map(|offset| &self.lanes[start.wrapping_add(offset) % lanes]);
        in_turn.min_by_key(|lane| lane.load()).expect("a link has at least one connection")
    }
}

async fn answer(
    lane: &LaneHandle,
    mut pending: Pending,
    deadline: Deadline,
    expiry: Pin<&mut Sleep>,
) -> Answer {
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
    pending.answer.try_recv().unwrap_or_else(|_| Err(expired(lane, deadline, unsent)))
}

/// What a caller is told whose deadline has passed.
fn expired(lane: &LaneHandle, deadline: Deadline, unsent: bool) -> StoreError {
    let wait = deadline.wait();
    if !unsent {
        let why = "no reply came in time; see Redis's SLOWLOG, or raise the deadline";
        return StoreError::Ambiguous { why: format!("it was sent, and {wait:?} have passed: {why}").into() };
    }
    if wait.is_zero() {
        let why = "its deadline had passed before the call; give it more time";
        return StoreError::Unavailable { why: why.into() };
    }
    let why = lane.trouble().unwrap_or_else(|| {
        "earlier calls still wait for Redis; see its SLOWLOG, or raise the deadline or the connections".into()
    });
    StoreError::Unavailable { why: format!("nothing was sent within {wait:?}: {why}").into() }
}
