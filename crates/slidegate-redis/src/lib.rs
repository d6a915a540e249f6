//! slidegate's shared store: many processes, one truth, in Redis.
//!
//! [`RedisStore`] is a [`Store`](slidegate::store::Store): it answers as the store in memory does, field by field, for
//! all who share a Redis and name their keys alike, by the clock of that Redis.
//!
//! ```no_run
//! use slidegate::store::{Store, When};
//! use slidegate::{Admission, Charge, Key, Rule};
//! use slidegate_redis::{RedisOptions, RedisStore};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect(&RedisOptions::new("redis://localhost:6379")?).await?;
//! let quota = Rule::builder("yt-quota").limit("9500/24h".parse()?).build()?;
//! let search = Charge { rule: &quota, key: Key::new("yt:quota:key1")?, cost: 100 };
//! let outcome = store.check(When::Now, &Admission::new(&[search])?).await?;
//! if !outcome.decision.allowed() {
//!     println!("stop: retry in {:?}", outcome.decision.retry_after());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Redis 5 or newer, standalone. Connections are opened in the tokio runtime that calls [`RedisStore::connect`], kept,
//! and opened anew when they are lost. A failure is never a denial: a
//! [`StoreError`](slidegate::store::StoreError) says whether the charge may have been made.
//!
//! [`scripts`] are for callers in other languages.

mod decode;
mod encode;
mod endpoint;
mod failure;
mod keys;
mod link;
mod options;
pub mod scripts;
mod store;
mod tls;

pub use keys::TemplateError;
pub use link::ConnectError;
pub use options::{CONNECTIONS_MAX, LogLayout, OptionsError, RedisOptions, WAIT_MAX};
pub use store::RedisStore;

/// The code of the project's README runs as a test.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../../../README.md")]
    struct OfTheProject;
}
