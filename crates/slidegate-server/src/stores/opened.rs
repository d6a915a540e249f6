//! A limiter over an open store, and the runtime that drives its calls: for commands that do one thing at a time.

use std::io;

use slidegate::store::{BoxStore, FailedStore};
use slidegate::{Limiter, StoreError};
use slidegate_stores::{StoreUrl, UrlError};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

/// A limiter, and the runtime that its calls run on.
#[derive(Debug)]
pub(crate) struct Opened {
    runtime: Runtime,
    pub(crate) limiter: Limiter<BoxStore>,
}

impl Opened {
    /// Opens a store for a program that does one thing at a time.
    pub(crate) fn open(url: &StoreUrl) -> Result<Self, OpenError> {
        let mut runtime = Builder::new_current_thread();
        // Only a network needs the system's queue of events, which takes longer to open than a file.
        let runtime = if url.kind() == "redis" { runtime.enable_all() } else { runtime.enable_time() };
        let runtime = runtime.build().map_err(OpenError::Runtime)?;
        let store = runtime.block_on(url.open())?;
        Ok(Self { runtime, limiter: Limiter::new(store) })
    }

    /// In place of a store that could not be opened: every answer is the outage policy's.
    pub(crate) fn failed(why: &str) -> Result<Self, OpenError> {
        let runtime = Builder::new_current_thread().enable_time().build().map_err(OpenError::Runtime)?;
        let error = StoreError::Unavailable { why: why.into() };
        Ok(Self { runtime, limiter: Limiter::new(BoxStore::new(FailedStore::new(error))) })
    }

    /// Waits for the answer of a call.
    pub(crate) fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.runtime.block_on(call)
    }
}

/// Why a store could not be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// The system refuses what a runtime needs.
    #[error("cannot start: the system refuses what waiting needs (such as an epoll)")]
    Runtime(#[source] io::Error),
    /// It is not there, or cannot be used.
    #[error(transparent)]
    Open(#[from] slidegate_stores::OpenError),
    /// It cannot be used as asked.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// It is there, and does not give the secret that receipts are signed with.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is nothing to sign receipts with.
    #[error("cannot start: the system gives no random numbers; see getrandom(2)")]
    Random,
}
