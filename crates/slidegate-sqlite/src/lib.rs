//! slidegate's durable local store: many processes, one file, no daemon.
//!
//! [`SqliteStore`] is a [`Store`](slidegate::store::Store): it answers as the store in memory does, field by field, for
//! all processes of a machine that open the same file, and it remembers after they have ended.
//!
//! ```
//! use slidegate::store::{Store, When};
//! use slidegate::testing::block_on;
//! use slidegate::{Admission, Charge, Key, Rule};
//! use slidegate_sqlite::{SqliteOptions, SqliteStore};
//!
//! # let directory = std::env::temp_dir().join(format!("slidegate-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! let store = SqliteStore::open(&SqliteOptions::new(directory.join("quota.db")))?;
//! let quota = Rule::builder("yt-quota").limit("9500/24h".parse()?).build()?;
//! let search = Charge { rule: &quota, key: Key::new("yt:quota:key1")?, cost: 100 };
//! // Blocking inside: the future is ready when it is first polled.
//! let outcome = block_on(store.check(When::Now, &Admission::new(&[search])?))?;
//! assert_eq!(outcome.decision.remaining(), 9_400);
//! # std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An admission is on the disk before it is answered ([`Durability`] says how surely); a denial writes nothing. Whoever
//! finds the file in use waits for its turn within the deadline. A failure is never a denial: a
//! [`StoreError`](slidegate::store::StoreError) says whether the charge may have been made.

mod error;
mod failure;
mod file;
mod forgetting;
mod hold;
mod log;
mod options;
mod patience;
mod returns;
mod rows;
mod schema;
mod store;
#[cfg(test)]
mod tests;
mod transaction;

pub use error::OpenError;
pub use options::{DEADLINE_DEFAULT, DEADLINE_MAX, Durability, OptionsError, SqliteOptions};
pub use store::SqliteStore;
