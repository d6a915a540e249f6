//! slidegate's durable local store: many processes, one file, no daemon.
//!
//! [`SqliteStore`] is a [`Store`](slidegate::store::Store). It answers as the store in memory does, field by field. All
//! processes of a machine that open the same file share its states, which outlive them.
//!
//! ```
//! use slidegate::{Limiter, Rule};
//! use slidegate_sqlite::SqliteStore;
//!
//! # let directory = std::env::temp_dir().join(format!("slidegate-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! # let path = directory.join("quota.db");
//! let limiter = Limiter::new(SqliteStore::open(path)?);
//! let decision = limiter.check_n(&Rule::new("yt-quota", "9500/24h")?, "yt:quota:key1", 100)?.into_owned();
//! assert_eq!(decision.remaining(), Some(9_400));
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The plain verbs block the thread while they wait for the file. On an executor use the `_async` verbs, which run on a
//! thread of the store:
//!
//! ```
//! use slidegate::{CheckError, Limiter, Rule};
//! use slidegate_sqlite::SqliteStore;
//!
//! async fn may_search(limiter: &Limiter<SqliteStore>, quota: &Rule) -> Result<bool, CheckError> {
//!     Ok(limiter.check_n_async(quota, "yt:quota:key1", 100).await?.allowed())
//! }
//! ```
//!
//! An admission is written before its answer, and [`Durability`] says what it survives; a denial writes nothing. A call that finds the
//! file locked waits for the lock until its deadline. A failure is never a denial: a
//! [`StoreError`](slidegate::store::StoreError) says whether the charge may have been made.

mod clock_steps;
mod directory_lock;
mod engine;
mod error;
mod file;
mod file_error;
mod file_lock;
mod lock_wait;
mod options;
mod owned_admission;
mod receipts;
mod rows;
mod schema;
mod store;
mod store_file;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod verbs;
mod wal;
mod worker;

pub use error::OpenError;
pub use options::{DEADLINE_DEFAULT, DEADLINE_MAX, Durability, OptionsError, SqliteOptions};
pub use store::SqliteStore;
pub use worker::QUEUE_MAX;

/// The code of the README is tested.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
