//! The connection layer: sends calls and returns their replies.
//!
//! ```text
//! call ---- queue ---- lane ---- wire ---- stream ---- Redis
//!           bounded    a task    RESP      TCP, TLS, Unix
//! ```
//!
//! A few connections serve all callers of a process. Each has a task of its own, its lane, and calls that queue there
//! share round trips. Every call has a deadline, which is enforced here: it passes before the lane has started the call
//! ([`StoreError::Unavailable`], the call is never sent) or after ([`StoreError::Ambiguous`]).
//!
//! Rejected: the connection manager of the `redis` crate. It does not report whether a command was written before its
//! connection broke, so every idle connection that a server has closed would end in an ambiguous call.

mod backoff;
mod command;
mod error;
mod lane;
mod queued_call;
mod stream;
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

use crate::call_error::CallError;
use crate::options::RedisOptions;
use command::Command;
use lane::{BATCH_BYTES_MAX, LaneHandle};
use queued_call::{CallResult, PendingCall, queued_call};
use wire::{Target, Wire};

/// The connections to one Redis. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Link {
    lanes: Box<[LaneHandle]>,
    next: AtomicUsize,
    /// The timeout of a call without a deadline of its own.
    timeout_default: Duration,
}

/// The deadline of a call, or of all calls of a batch.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    called_at: Instant,
    at: Instant,
}

impl Deadline {
    /// Time from the call to the deadline, in whole milliseconds, rounded up; zero if the deadline had passed.
    fn timeout(self) -> Duration {
        let wait = self.at.saturating_duration_since(self.called_at);
        let part = wait.subsec_nanos() % 1_000_000;
        if part == 0 { wait } else { wait + Duration::from_nanos(u64::from(1_000_000 - part)) }
    }
}

impl Link {
    /// Opens all connections. A lane opens a lost one again.
    pub(crate) async fn connect(options: &RedisOptions) -> Result<Self, ConnectError> {
        let target = Target::new(options)?;
        let mut lanes = Vec::with_capacity(options.connections);
        for _ in 0..options.connections {
            let wire = Wire::open(&target).await?;
            lanes.push(LaneHandle::start(target.clone(), wire, options.deadline));
        }
        Ok(Self { lanes: lanes.into(), next: AtomicUsize::new(0), timeout_default: options.deadline })
    }

    /// Calls a script. Without `until` the deadline of the options counts, from now.
    pub(crate) async fn call(
        &self,
        until: Option<StdInstant>,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        self.send_one(until, Command::Script(call)).await
    }

    /// Calls scripts one after the other, in one round trip unless there are very many, with one deadline. Returns one
    /// result per call, in order.
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
                answers.extend(self.send(deadline, std::mem::take(&mut commands)).await);
                bytes = 0;
            }
        }
        if !commands.is_empty() {
            answers.extend(self.send(deadline, commands).await);
        }
        answers
    }

    /// One step of a SCAN: the next cursor, 0 at the end, and names. A name may occur more than once.
    pub(crate) async fn scan(
        &self,
        until: Option<StdInstant>,
        pattern: &[u8],
        cursor: u64,
    ) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
        let scan = Command::Scan { pattern: pattern.to_vec(), cursor };
        let decode = |reply| from_redis_value(reply).map_err(|_| CallError::malformed_reply("SCAN").into());
        // SCAN charges nothing, so its errors are never ambiguous.
        self.send_one(until, scan).await.and_then(decode).map_err(|error| match error {
            StoreError::Ambiguous { why } => StoreError::Unavailable { why },
            other => other,
        })
    }

    async fn send_one(&self, until: Option<StdInstant>, command: Command) -> CallResult {
        let mut answers = self.send(self.deadline(until), vec![command]).await;
        answers.pop().expect("every command has an answer")
    }

    /// The deadline `until`, else that of the options.
    fn deadline(&self, until: Option<StdInstant>) -> Deadline {
        let called_at = Instant::now();
        let at = until.map_or_else(|| called_at + self.timeout_default, Instant::from_std);
        Deadline { called_at, at }
    }

    /// Sends commands together, and waits for their results until the deadline. After the deadline nothing is sent.
    async fn send(&self, deadline: Deadline, commands: Vec<Command>) -> Vec<CallResult> {
        let lane = self.least_busy();
        if Instant::now() >= deadline.at {
            return commands.iter().map(|_| Err(deadline_error(lane, deadline, true))).collect();
        }
        let mut expiry = pin!(sleep_until(deadline.at));
        let (calls, pending): (Vec<_>, Vec<_>) =
            commands.into_iter().map(|command| queued_call(command, deadline.at)).unzip();
        tokio::select! {
            biased;
            // If the lane has ended, the calls are dropped, and waiting for their results ends at once.
            _ = lane.queue.send(calls) => {},
            () = &mut expiry => {},
        }
        let mut results = Vec::with_capacity(pending.len());
        for pending in pending {
            results.push(result_of(lane, pending, deadline, expiry.as_mut()).await);
        }
        results
    }

    /// An idle lane, else the one with the shortest queue; round-robin among equals.
    fn least_busy(&self) -> &LaneHandle {
        let (start, lanes) = (self.next.fetch_add(1, Ordering::Relaxed), self.lanes.len());
        let round_robin = (0..lanes).map(|offset| &self.lanes[start.wrapping_add(offset) % lanes]);
        round_robin.min_by_key(|lane| lane.load()).expect("a link has at least one connection")
    }
}

async fn result_of(
    lane: &LaneHandle,
    mut pending: PendingCall,
    deadline: Deadline,
    expiry: Pin<&mut Sleep>,
) -> CallResult {
    let received = tokio::select! {
        biased;
        result = &mut pending.result => result.ok(),
        () = expiry => None,
    };
    if let Some(result) = received {
        return result;
    }
    let unsent = pending.cancel();
    // The result may have arrived since.
    pending.result.try_recv().unwrap_or_else(|_| Err(deadline_error(lane, deadline, unsent)))
}

/// The error of a call whose deadline has passed.
fn deadline_error(lane: &LaneHandle, deadline: Deadline, unsent: bool) -> StoreError {
    let wait = deadline.timeout();
    if !unsent {
        let why = "no reply came in time; see Redis's SLOWLOG, or raise the deadline";
        return StoreError::Ambiguous { why: format!("it was sent, and {wait:?} have passed: {why}").into() };
    }
    if wait.is_zero() {
        let why = "its deadline had passed before the call; give it more time";
        return StoreError::Unavailable { why: why.into() };
    }
    let why = lane.last_error().unwrap_or_else(|| {
        "earlier calls still wait for Redis; see its SLOWLOG, or raise the deadline or the connections".into()
    });
    StoreError::Unavailable { why: format!("nothing was sent within {wait:?}: {why}").into() }
}
