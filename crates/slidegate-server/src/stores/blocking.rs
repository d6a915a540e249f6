//! A limiter over an open store with a runtime of its own, for commands that make one call at a time.

use std::io;
use std::time::Duration;

use slidegate::store::{BoxStore, FailedStore};
use slidegate::time::SystemClock;
use slidegate::{Limiter, StoreError};
use slidegate_stores::{StoreUrl, UrlError};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

/// Deadline of a Redis, connecting included. Longer than that of a server: a script should rather wait than fail because a
/// machine is busy.
const REDIS_DEADLINE: Duration = Duration::from_secs(2);

/// A limiter and the runtime that its calls run on.
#[derive(Debug)]
pub(crate) struct BlockingLimiter {
    runtime: Runtime,
    pub(crate) limiter: Limiter<BoxStore>,
}

impl BlockingLimiter {
    /// Opens the store at `url`, and connects it.
    pub(crate) fn open(url: &StoreUrl) -> Result<Self, OpenError> {
        Self::open_by(url, async |url: StoreUrl| url.open().await)
    }

    /// Opens the store at `url`. A server that cannot be reached is no error yet: its calls fail, by their deadline.
    pub(crate) fn open_lazily(url: &StoreUrl) -> Result<Self, OpenError> {
        Self::open_by(url, async |url: StoreUrl| url.open_lazily_on_clock(SystemClock::new()).await)
    }

    fn open_by(
        url: &StoreUrl,
        open: impl AsyncFnOnce(StoreUrl) -> Result<BoxStore, slidegate_stores::OpenError>,
    ) -> Result<Self, OpenError> {
        let is_redis = url.kind() == "redis";
        let url = if is_redis { url.clone().deadline(REDIS_DEADLINE)? } else { url.clone() };
        let mut runtime = Builder::new_current_thread();
        // Only a network store needs an epoll, which takes longer to open than a file.
        let runtime = if is_redis { runtime.enable_all() } else { runtime.enable_time() };
        let runtime = runtime.build().map_err(OpenError::Runtime)?;
        let store = runtime.block_on(open(url))?;
        Ok(Self { runtime, limiter: Limiter::new(store) })
    }

    /// A stand-in for a store that could not be opened: the outage policy gives every answer.
    pub(crate) fn failed(why: &str) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(OpenError::Runtime)?;
        let error = StoreError::Unavailable { why: why.into() };
        Ok(Self { runtime, limiter: Limiter::new(BoxStore::new(FailedStore::new(error))) })
    }

    /// Runs a call to its end.
    pub(crate) fn block_on<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }
}

/// Why a store could not be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// The system refuses a resource that the runtime needs.
    #[error(
        "cannot start: the system refuses a resource for the async runtime (such as an epoll); see ulimit -n"
    )]
    Runtime(#[source] io::Error),
    /// The store is missing or unusable.
    #[error(transparent)]
    Open(#[from] slidegate_stores::OpenError),
    /// The URL asks for what the store cannot do.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The store does not return the secret that signs receipts.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No random secret could be made to sign receipts.
    #[error("cannot start: the system gives no random numbers; see getrandom(2)")]
    Random,
}
