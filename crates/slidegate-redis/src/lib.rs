//! slidegate's shared store: many processes share their limits in one Redis.
//!
//! [`RedisStore`] is a [`Store`](slidegate::store::Store). It answers as the store in memory does, field by field, by
//! the clock of the Redis. All processes that use the same Redis and the same key template share their states.
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
//! [`RedisOptions`] set the names of keys, the deadline of a call and the trusted certificates; most of them can be
//! [parameters of the URL](RedisOptions::new). See [`RedisStore::connect_with`]. [`Limiter::with_deadline`](slidegate::Limiter::with_deadline) gives a single call another
//! deadline.
//!
//! Redis 5 or newer, standalone, with Sentinel or as a Cluster. Connections belong to the tokio runtime that calls
//! [`RedisStore::connect`]; a lost one is opened again. [`RedisStore::lazy`] opens a store whose Redis may be down. A
//! failure is never a denial: a [`StoreError`](slidegate::store::StoreError) says whether the charge
//! may have been made.
//!
//! [`scripts`] holds the Lua scripts, for callers in other languages.

mod call_error;
mod cluster;
mod connections;
mod decode;
mod encode;
mod endpoint;
mod keys;
mod link;
mod options;
mod parameters;
pub mod scripts;
mod shards;
mod store;
#[cfg(feature = "testing")]
mod testing;
mod tls;

pub use keys::TEMPLATE_BYTES_MAX;
pub use link::{ConnectError, OpenError};
pub use options::{CONNECTIONS_MAX, LogLayout, OptionsError, RedisOptions, WAIT_MAX};
pub use store::RedisStore;

/// The code of the READMEs, this crate's and the project's, is tested.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../../../README.md")]
    struct ProjectReadme;
}
