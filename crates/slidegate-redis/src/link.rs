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
//! A lane connects to a `target`: one server, or the primary that the sentinels name (`sentinel`).
//!
//! Rejected: the connection manager of the `redis` crate, and its clients for Sentinel and Cluster. They do not report
//! whether a command was written before its connection broke: every idle connection that a server has closed would end
//! in an ambiguous call, or in a command that is sent twice.

mod backoff;
mod command;
mod error;
mod lane;
mod lane_status;
mod queued_call;
mod sentinel;
mod stream;
mod target;
mod wire;

#[cfg(test)]
mod tests;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant as StdInstant};

use redis::{Value, from_redis_value};
use slidegate::store::StoreError;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

pub(crate) use backoff::Backoff;
pub(crate) use command::ScriptCall;
pub use error::{ConnectError, OpenError};
pub(crate) use lane::BATCH_CALLS_MAX;
pub(crate) use queued_call::CallResult;
pub(crate) use target::Target;

use crate::call_error::CallError;
use crate::options::RedisOptions;
use command::Command;
use lane::{BATCH_BYTES_MAX, LaneHandle};
use queued_call::{PendingCall, queued_call};
use target::Source;

/// The connections to one Redis. Dropping it closes them.
#[derive(Debug)]
pub(crate) struct Link {
    source: Arc<Source>,
    /// Started by the first call, if there was no runtime before it.
    lanes: OnceLock<Lanes>,
    connections: usize,
    next: AtomicUsize,
    /// The timeout of a call without a deadline of its own.
    timeout_default: Duration,
}

/// The running tasks of a link.
#[derive(Debug)]
struct Lanes {
    lanes: Box<[LaneHandle]>,
    /// Keeps the address of the server current.
    watch: JoinHandle<()>,
}

impl Lanes {
    fn new(source: &Arc<Source>, lanes: impl IntoIterator<Item = LaneHandle>) -> Self {
        let source = Arc::clone(source);
        Self { lanes: lanes.into_iter().collect(), watch: tokio::spawn(async move { source.watch().await }) }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.watch.abort();
    }
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
        Self::connect_source(Source::new(options)?, options).await
    }

    /// The same to one node, whatever servers the options name.
    pub(crate) async fn connect_to(target: Target, options: &RedisOptions) -> Result<Self, ConnectError> {
        Self::connect_source(Source::Server(target), options).await
    }

    async fn connect_source(source: Source, options: &RedisOptions) -> Result<Self, ConnectError> {
        let link = Self::unconnected(source, options);
        let mut lanes = Vec::with_capacity(options.connections);
        for _ in 0..options.connections {
            let wire = link.source.open().await?;
            lanes.push(LaneHandle::start(Arc::clone(&link.source), Some(wire), options.deadline));
        }
        let lanes = OnceLock::from(Lanes::new(&link.source, lanes));
        Ok(Self { lanes, ..link })
    }

    /// Connects in the background, and again whenever a connection is lost. Fails only for what needs no server. Outside
    /// of a runtime the first call starts it: connections belong to the runtime of that call.
    pub(crate) fn lazy(options: &RedisOptions) -> Result<Self, ConnectError> {
        Ok(Self::unconnected(Source::new(options)?, options).started())
    }

    /// The same for one node, whatever servers the options name.
    pub(crate) fn lazy_to(target: Target, options: &RedisOptions) -> Self {
        Self::unconnected(Source::Server(target), options).started()
    }

    fn unconnected(source: Source, options: &RedisOptions) -> Self {
        let (lanes, next) = (OnceLock::new(), AtomicUsize::new(0));
        let (connections, timeout_default) = (options.connections, options.deadline);
        Self { source: Arc::new(source), lanes, connections, next, timeout_default }
    }

    fn started(self) -> Self {
        if Handle::try_current().is_ok() {
            self.lanes();
        }
        self
    }

    fn lanes(&self) -> &[LaneHandle] {
        let started = self.lanes.get_or_init(|| {
            let start = |_| LaneHandle::start(Arc::clone(&self.source), None, self.timeout_default);
            Lanes::new(&self.source, (0..self.connections).map(start))
        });
        &started.lanes
    }

    /// Calls a script. Without `until` the deadline of the options counts, from now.
    pub(crate) async fn call(
        &self,
        until: Option<StdInstant>,
        call: ScriptCall,
    ) -> Result<Value, StoreError> {
        Ok(self.try_call(until, call).await?)
    }

    /// The same, with the error that says more.
    pub(crate) async fn try_call(
        &self,
        until: Option<StdInstant>,
        call: impl Into<Arc<ScriptCall>>,
    ) -> CallResult {
        self.send_one(until, Command::Script(call.into())).await
    }

    /// Calls scripts one after the other, in one round trip unless there are very many, with one deadline. Returns one
    /// result per call, in order.
    pub(crate) async fn call_all(
        &self,
        until: Option<StdInstant>,
        calls: Vec<ScriptCall>,
    ) -> Vec<Result<Value, StoreError>> {
        let answers = self.try_call_all(until, calls.into_iter().map(Arc::new)).await;
        answers.into_iter().map(|answer| Ok(answer?)).collect()
    }

    /// The same, with the errors that say more.
    pub(crate) async fn try_call_all(
        &self,
        until: Option<StdInstant>,
        calls: impl Iterator<Item = Arc<ScriptCall>>,
    ) -> Vec<CallResult> {
        self.send_in_batches(until, calls.map(Command::Script)).await
    }

    /// The same on a node of a cluster that a slot is just moving to.
    pub(crate) async fn try_call_all_asking(
        &self,
        until: Option<StdInstant>,
        calls: impl Iterator<Item = Arc<ScriptCall>>,
    ) -> Vec<CallResult> {
        self.send_in_batches(until, calls.map(Command::AskingScript)).await
    }

    /// Asks a node of a cluster which node owns which slots.
    pub(crate) async fn cluster_slots(&self, until: Option<StdInstant>) -> CallResult {
        self.send_one(until, Command::ClusterSlots).await
    }

    async fn send_in_batches(
        &self,
        until: Option<StdInstant>,
        all: impl Iterator<Item = Command>,
    ) -> Vec<CallResult> {
        let deadline = self.deadline(until);
        let (mut answers, mut commands, mut bytes) = (Vec::new(), Vec::new(), 0);
        for command in all {
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
        let decode = |reply| from_redis_value(reply).map_err(|_| CallError::malformed_reply("SCAN"));
        // SCAN charges nothing, so its errors are never ambiguous.
        self.send_one(until, scan).await.and_then(decode).map_err(|error| match error.into() {
            StoreError::Ambiguous { why } => StoreError::Unavailable { why },
            other => other,
        })
    }

    async fn send_one(&self, until: Option<StdInstant>, command: Command) -> CallResult {
        let mut answers = self.send(self.deadline(until), vec![command]).await;
        answers.pop().expect("every command has an answer")
    }

    /// The instant of the deadline `until`, else that of the options, for several calls in a row.
    pub(crate) fn deadline_at(&self, until: Option<StdInstant>) -> StdInstant {
        self.deadline(until).at.into_std()
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
            return commands.iter().map(|_| Err(self.deadline_error(lane, deadline, true))).collect();
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
            results.push(self.result_of(lane, pending, deadline, expiry.as_mut()).await);
        }
        results
    }

    /// An idle lane, else the one with the shortest queue; round-robin among equals. One without a connection comes last.
    fn least_busy(&self) -> &LaneHandle {
        let lanes = self.lanes();
        let (start, count) = (self.next.fetch_add(1, Ordering::Relaxed), lanes.len());
        let round_robin = (0..count).map(|offset| &lanes[start.wrapping_add(offset) % count]);
        round_robin.min_by_key(|lane| lane.load()).expect("a link has at least one connection")
    }

    async fn result_of(
        &self,
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
        pending.result.try_recv().unwrap_or_else(|_| Err(self.deadline_error(lane, deadline, unsent)))
    }

    /// The error of a call whose deadline has passed.
    fn deadline_error(&self, lane: &LaneHandle, deadline: Deadline, unsent: bool) -> CallError {
        let wait = deadline.timeout();
        if !unsent {
            let why = "no reply came in time; see Redis's SLOWLOG, or raise the deadline";
            return CallError::ambiguous(format!("it was sent, and {wait:?} have passed: {why}"));
        }
        if lane.has_ended() {
            let why = "the tokio runtime of the store's connections has ended; let it run as long as the store is used";
            return CallError::not_sent(why);
        }
        if wait.is_zero() {
            return CallError::not_sent("its deadline had passed before the call; give it more time");
        }
        let why = lane.last_error().unwrap_or_else(|| {
            if lane.is_connecting() {
                return format!("{} is not connected yet; check that it can be reached", self.source).into();
            }
            "earlier calls still wait for Redis; see its SLOWLOG, or raise the deadline or the connections"
                .into()
        });
        CallError::not_sent(format!("nothing was sent within {wait:?}: {why}"))
    }
}
