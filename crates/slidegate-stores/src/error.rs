//! Why a store cannot be opened.

use slidegate::store::BudgetError;
use thiserror::Error;

/// Why a URL names no store. No password is ever repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// No store that there is.
    #[error("store: `{text}` is not available; write `memory`, `sqlite:PATH` or `redis://HOST:PORT`")]
    Unknown {
        /// What was written, without what may be a password.
        text: String,
    },
    /// A store that this program was built without.
    #[error("store: this program was built without `{scheme}:`; build it with the feature `{feature}`")]
    NotBuilt {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The feature of this crate that brings it.
        feature: &'static str,
    },
    /// A file that cannot be used as asked.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OptionsError),
    /// A Redis that cannot be used as asked.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] slidegate_redis::OptionsError),
}

/// Why a store could not be opened. No password is ever repeated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL names none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A memory budget that is too small.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The file cannot be used.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OpenError),
    /// The Redis is not there, or not as it should be.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] slidegate_redis::ConnectError),
}
