//! Refreshes of the slot map: one at a time, in a task of its own, for all callers that need it.
//!
//! Any node may be asked: the primaries that own slots, then their replicas, then the seeds of the URL. A node that does
//! not answer soon costs little, because the next one is asked beside it; the first map that arrives counts. It may be out
//! of date, as nodes learn of a failover one after the other. Then calls are redirected or fail once more, and the next
//! refresh begins with another node.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slidegate::store::{RefusalCause, StoreError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::Shared;
use super::redirect::NodeAddress;
use super::slot_map::SlotsReply;
use crate::link::{ConnectError, Link};

/// From the end of a refresh to the begin of the next one: many redirected calls cause one refresh.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// From one refresh to the next while calls go unanswered, which has many causes.
const DOUBT_PAUSE: Duration = Duration::from_secs(1);
/// How long one node is waited for before the next one is asked beside it.
const HEDGE_AFTER: Duration = Duration::from_millis(100);

/// Refreshes, and the result of the last one.
#[derive(Debug)]
pub(super) struct Refreshes {
    last: Mutex<LastRefresh>,
    /// The number of refreshes that have ended.
    ended: watch::Sender<u64>,
    /// The source that is asked first.
    first: AtomicUsize,
}

#[derive(Debug, Default)]
struct LastRefresh {
    running: bool,
    ended_at: Option<Instant>,
    error: Option<StoreError>,
}

impl Default for Refreshes {
    fn default() -> Self {
        Self { last: Mutex::default(), ended: watch::channel(0).0, first: AtomicUsize::new(0) }
    }
}

impl Refreshes {
    fn last(&self) -> MutexGuard<'_, LastRefresh> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Starts a refresh in the background, unless one is running.
    pub(super) fn refresh(self: &Arc<Self>) {
        let mut last = self.refreshes.last();
        if last.running {
            return;
        }
        last.running = true;
        let begins_at = last.ended_at.map(|ended_at| ended_at + PAUSE_MIN);
        // A runtime that has ended drops the task at once, and with it the guard, which takes the lock.
        drop(last);
        let running = RunningRefresh(Arc::clone(self));
        self.opener.runtime().spawn(async move {
            if let Some(begins_at) = begins_at {
                sleep_until(begins_at).await;
            }
            let error = running.0.load().await.err();
            running.0.refreshes.last().error = error;
        });
    }

    /// The same, unless the last one was a moment ago: for failures that seldom mean another map.
    pub(super) fn refresh_now_and_then(self: &Arc<Self>) {
        let ended_at = self.refreshes.last().ended_at;
        if ended_at.is_none_or(|ended_at| ended_at.elapsed() > DOUBT_PAUSE) {
            self.refresh();
        }
    }

    /// Waits for a map that is not older than a moment, until the deadline. Fails with the error of the last refresh: no
    /// node could be asked.
    pub(super) async fn fresh_map(self: &Arc<Self>, deadline: Instant) -> Result<(), StoreError> {
        let mut ended = self.refreshes.ended.subscribe();
        let is_fresh = |last: &LastRefresh| last.ended_at.is_some_and(|at| at.elapsed() < PAUSE_MIN);
        if !is_fresh(&self.refreshes.last()) {
            self.refresh();
            // The sender lives as long as `self`, so this ends with a refresh or with the deadline.
            let waited = timeout_at(deadline, ended.changed()).await;
            if waited.is_err() && self.refreshes.last().ended_at.is_none() {
                let why = "the slot map of the cluster is not known yet; check that its nodes can be reached";
                return Err(StoreError::Unavailable { why: why.into() });
            }
        }
        self.refreshes.last().error.clone().map_or(Ok(()), Err)
    }

    /// Asks the sources until one answers.
    async fn load(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut sources = self.sources().into_iter();
        let (mut asked, mut error) = (JoinSet::new(), None);
        loop {
            if let Some(address) = sources.next() {
                let shared = Arc::clone(self);
                asked.spawn(async move { shared.ask(&address).await });
            }
            let more = sources.len() > 0;
            tokio::select! {
                Some(answer) = asked.join_next() => match answer {
                    Ok(Ok(reply)) => {
                        self.map_mut().replace(reply);
                        return Ok(());
                    }
                    Ok(Err(failed)) => error = Some(failed),
                    // Asking does not panic.
                    Err(_) => {}
                },
                () = sleep(HEDGE_AFTER), if more => {}
                else => {
                    let none = || StoreError::Unavailable { why: "no node of the cluster answers".into() };
                    return Err(error.unwrap_or_else(none));
                }
            }
        }
    }

    /// The nodes to ask, each time beginning with another one, then the seeds.
    fn sources(&self) -> Vec<NodeAddress> {
        let mut sources = self.map().addresses();
        if !sources.is_empty() {
            let first = self.refreshes.first.fetch_add(1, Ordering::Relaxed) % sources.len();
            sources.rotate_left(first);
        }
        for seed in &self.seeds {
            if !sources.contains(seed) {
                sources.push(seed.clone());
            }
        }
        sources
    }

    /// Asks one node for the map, over its own connections if it has some.
    async fn ask(&self, address: &NodeAddress) -> Result<SlotsReply, StoreError> {
        let open = self.map().primaries().into_iter().find(|node| node.address() == address);
        let reply = match open {
            Some(node) => self.slots_of(address, node.link(&self.opener)).await,
            None => self.slots_of(address, &self.opener.open(address, 1)).await,
        };
        reply.map_err(|(why, cause)| {
            let why = format!("the node at {address} gives no slot map: {why}").into();
            // Only the operator can correct a login.
            if cause == RefusalCause::Forbidden {
                StoreError::Refused { cause, why }
            } else {
                StoreError::Unavailable { why }
            }
        })
    }

    async fn slots_of(
        &self,
        address: &NodeAddress,
        link: &Link,
    ) -> Result<SlotsReply, (Box<str>, RefusalCause)> {
        let until = Instant::now() + self.opener.options().connect_timeout;
        let reply =
            link.cluster_slots(Some(until.into_std())).await.map_err(|error| (error.why, error.cause))?;
        SlotsReply::parse(reply, address).map_err(|why| (why.into(), RefusalCause::Other))
    }

    /// Asks the seeds one after the other; the first map counts.
    pub(super) async fn load_first(&self) -> Result<(), ConnectError> {
        let mut failed = None;
        for seed in &self.seeds {
            let asked = async {
                let link = self.opener.connect(seed).await?;
                self.slots_of(seed, &link).await.map_err(|(why, cause)| ConnectError::Refused {
                    address: seed.to_string(),
                    why: format!("it gives no slot map: {why}"),
                    cause,
                })
            };
            match asked.await {
                Ok(reply) => {
                    self.map_mut().replace(reply);
                    return Ok(());
                }
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.expect("a cluster has at least one seed"))
    }
}

/// Ends a refresh when it is dropped, also if the refresh panics or its runtime ends.
struct RunningRefresh(Arc<Shared>);

impl Drop for RunningRefresh {
    fn drop(&mut self) {
        let refreshes = &self.0.refreshes;
        let mut last = refreshes.last();
        last.running = false;
        last.ended_at = Some(Instant::now());
        drop(last);
        refreshes.ended.send_modify(|ended| *ended += 1);
    }
}
