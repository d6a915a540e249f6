//! Opens a slidegate store from its URL, for programs whose settings name the store.
//!
//! ```
//! use slidegate::{Limiter, Rule};
//!
//! async fn login(url: &str, user: &str) -> Result<bool, Box<dyn std::error::Error>> {
//!     let limiter = Limiter::new(slidegate_stores::open(url).await?);
//!     Ok(limiter.check_async(&Rule::new("login", "5/1m")?, user).await?.allowed())
//! }
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # assert!(runtime.block_on(login("memory", "alice"))?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | URL | where states live | feature |
//! |---|---|---|
//! | `memory` | in this process | |
//! | `sqlite:PATH` | in a file that the processes of a machine share | `sqlite` |
//! | `redis://HOST:PORT`, `rediss://` (TLS), `unix:///PATH`, `redis+sentinel://`, `redis+cluster://`; `valkey` wherever `redis` stands | in a Redis or Valkey that a fleet shares | `redis` |
//!
//! Both features are on by default.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod url;

pub use error::{OpenError, UrlError};
pub use url::StoreUrl;

use slidegate::store::BoxStore;

/// Opens the store that a URL names.
///
/// Connections to Redis belong to the calling tokio runtime, which must run as long as the store is used. The calling
/// thread opens a SQLite file.
pub async fn open(url: &str) -> Result<BoxStore, OpenError> {
    url.parse::<StoreUrl>()?.open().await
}

/// The code of the README is tested.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
