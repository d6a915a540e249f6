//! Many concurrent callers, each waiting for its answer before the next call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use slidegate::time::{Clock, SystemClock};
use tokio::task::JoinSet;

use crate::scenario::Load;
use crate::subject::{AsyncLimiter, Request};

/// A time that is a boundary of every window.
const BEGIN_US: u64 = 20_000 * 86_400_000_000;

/// The sequence of requests to one subject, shared by all callers.
pub(crate) struct Requests {
    load: Load,
    next: AtomicU64,
}

impl Requests {
    pub(crate) fn new(load: Load) -> Self {
        Self { load, next: AtomicU64::new(0) }
    }

    /// The requests of the next call.
    fn take(&self) -> Vec<Request> {
        let Load { keys, step_us, batch, .. } = self.load;
        let first = self.next.fetch_add(batch, Ordering::Relaxed);
        let request =
            |number| Request { number, key: number % keys, at_us: BEGIN_US + number / keys * step_us };
        (first..first + batch).map(request).collect()
    }

    /// Whether every key is filled.
    fn preloaded(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.load.rounds * self.load.keys
    }
}

/// The counts of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SliceCounts {
    pub(crate) decisions: u64,
    pub(crate) admitted: u64,
    pub(crate) elapsed_us: u64,
}

/// Calls until every key is filled.
pub(crate) async fn preload<D: AsyncLimiter>(
    subject: &Arc<D>,
    requests: &Arc<Requests>,
    callers: u16,
) -> Result<SliceCounts> {
    drive(subject, requests, callers, Requests::preloaded).await
}

/// Calls for the length of a slice.
pub(crate) async fn slice<D: AsyncLimiter>(
    subject: &Arc<D>,
    requests: &Arc<Requests>,
    callers: u16,
    length: Duration,
) -> Result<SliceCounts> {
    let clock = SystemClock::new();
    let ends_us = clock.now_us() + u64::try_from(length.as_micros())?;
    drive(subject, requests, callers, move |_| clock.now_us() >= ends_us).await
}

async fn drive<D: AsyncLimiter>(
    subject: &Arc<D>,
    requests: &Arc<Requests>,
    callers: u16,
    done: impl Fn(&Requests) -> bool + Send + Sync + 'static,
) -> Result<SliceCounts> {
    let (clock, done) = (SystemClock::new(), Arc::new(done));
    let started_us = clock.now_us();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (subject, requests, done) = (Arc::clone(subject), Arc::clone(requests), Arc::clone(&done));
        tasks.spawn(async move {
            let mut driven = SliceCounts::default();
            while !done(&requests) {
                let taken = requests.take();
                driven.decisions += taken.len() as u64;
                driven.admitted += match taken[..] {
                    [one] => u64::from(subject.decide(one).await?),
                    _ => subject.decide_many(&taken).await?,
                };
            }
            anyhow::Ok(driven)
        });
    }
    let mut all = SliceCounts::default();
    while let Some(driven) = tasks.join_next().await {
        let driven = driven??;
        all.decisions += driven.decisions;
        all.admitted += driven.admitted;
    }
    Ok(SliceCounts { elapsed_us: clock.now_us() - started_us, ..all })
}
