//! slidegate's shared store: many processes, one truth, in Redis.
//!
//! [`RedisStore`] is a [`Store`](slidegate::store::Store): it answers as the store in memory does, field by field, for
//! all who share a Redis and name their keys alike, by the clock of that Redis.
//!
//! ```no_run
//! use slidegate::{Limiter, Rule};
//! use slidegate_redis::RedisStore;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Limiter::new(RedisStore::connect("redis://localhost").await?);
//! let decision = limiter.check_async(&Rule::new("login", "5/1m")?, "alice").await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`RedisOptions`] say how keys are named, how long a call may take, and whom TLS trusts:
//! [`RedisStore::connect_with`]. A single call has another deadline by
//! [`Limiter::with_deadline`](slidegate::Limiter::with_deadline).
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
#[cfg(feature = "testing")]
mod testing;
mod tls;

pub use link::{ConnectError, OpenError};
pub use options::{CONNECTIONS_MAX, LogLayout, OptionsError, RedisOptions, WAIT_MAX};
pub use store::RedisStore;

/// The code of the project's README runs as a test.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../../../README.md")]
    struct OfTheProject;
}
