//! Errors of store URLs and of opening stores.

use slidegate::store::BudgetError;
use thiserror::Error;

/// An invalid store URL. The error never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    /// An unknown store.
    #[error("store: `{text}` is not available; write `memory`, `sqlite:PATH` or `redis://HOST:PORT`")]
    Unknown {
        /// The given text, without parts that may be a password.
        text: String,
    },
    /// A store whose feature is off in this build.
    #[error("store: this program was built without `{scheme}:`; build it with the feature `{feature}`")]
    NotBuilt {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The feature of this crate that adds it.
        feature: &'static str,
    },
    /// An invalid SQLite URL or option.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OptionsError),
    /// An invalid Redis URL or option.
    #[cfg(feature = "redis")]
    #[error("{}", of_store(.0))]
    Redis(#[from] slidegate_redis::OptionsError),
}

/// The text of an error in a parameter, which begins with the name of the parameter, says that it is one of the store.
#[cfg(feature = "redis")]
fn of_store(error: &slidegate_redis::OptionsError) -> String {
    let text = error.to_string();
    if text.starts_with("store: ") { text } else { format!("store: {text}") }
}

/// A store that cannot be opened. The error never contains the password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is invalid.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The memory budget is too small.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The file cannot be opened.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Sqlite(#[from] slidegate_sqlite::OpenError),
    /// Connecting to Redis failed.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] slidegate_redis::ConnectError),
}
