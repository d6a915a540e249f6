//! Sliding-window rate limiting that holds.
//!
//! By default no window ever contains more than its limit, wherever it starts. A refusal names the exact instant at
//! which the same request passes. A refused request costs nothing.
//!
//! # First decision
//!
//! A [`Rule`] has a limit, a [`Key`] says who is limited, and a [`Limiter`] answers with a [`Decision`].
//!
//! ```
//! use slidegate::{Limiter, Rule};
//!
//! let limiter = Limiter::in_memory();
//! let login = Rule::new("login", "5/1m")?;
//! let decision = limiter.check(&login, "alice")?;
//! assert_eq!((decision.allowed(), decision.remaining()), (true, Some(4)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Several charges and a refund
//!
//! A [`Charge`] is a number of units of a rule for a key. Several charges pass together or not at all:
//!
//! ```
//! use slidegate::{Limiter, Rule};
//!
//! let limiter = Limiter::in_memory();
//! // The upstream allows 10,000 units a day; headroom keeps us at 9,500.
//! let quota = Rule::builder("quota").limit("10000/24h".parse()?).headroom("0.05".parse()?).build()?;
//! let search = Rule::new("search", "500/10m")?;
//! let decision = limiter.check_all(&[quota.charge("key1", 100)?, search.charge("key1", 100)?])?;
//! assert_eq!((decision.rule(), decision.remaining()), ("search", Some(400)));
//!
//! // The upstream call failed: give the units back to both rules.
//! let receipt = decision.receipt().expect("an admission has a receipt");
//! assert_eq!(limiter.refund(&receipt)?.units, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Receipt`] borrows nothing, so another task can refund it, or settle it for the true cost.
//!
//! # Waiting
//!
//! `acquire` waits until the request is admitted, first come first served per key, up to a maximum. It blocks the
//! thread; [`Limiter::acquire_async`] sleeps by a [`Timer`](time::Timer), here that of the feature `tokio`:
//!
//! ```
//! use slidegate::time::TokioTimer;
//! use slidegate::{Limiter, Rule};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/5ms")?);
//! for _ in 0..2 {
//!     let decision = limiter.acquire_async(&TokioTimer, &api, "alice", Duration::from_secs(1)).await?;
//!     assert!(decision.allowed());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Where states live
//!
//! | crate | limiter | where | verbs |
//! |---|---|---|---|
//! | `slidegate` | [`Limiter::in_memory()`](Limiter::in_memory) | in this process | blocking, `_async` |
//! | `slidegate-sqlite` | `Limiter::new(SqliteStore::open(path)?)` | in a shared file | blocking, `_async` |
//! | `slidegate-redis` | `Limiter::new(RedisStore::connect(url).await?)` | in a Redis for a fleet | `_async` |
//! | `slidegate-stores` | `Limiter::new(slidegate_stores::open(url).await?)` | where the URL says | `_async` |
//!
//! # When the store fails
//!
//! A [`guard`] stands between a limiter and a remote store: deadline, circuit breaker, a cache of denials, and the outage
//! policy of the rule ([`OnStoreError`](rule::OnStoreError)) or of [one call](Limiter::with_outage_policy). It tells a
//! function of yours when the breaker opens and closes, and of every degraded answer:
//!
//! ```
//! use slidegate::guard::{GuardEvent, GuardOptions};
//! use slidegate::rule::OnStoreError;
//! use slidegate::store::MemoryStore;
//! use slidegate::{Limiter, Rule};
//!
//! let options = GuardOptions::default().on_event(|event| match event {
//!     GuardEvent::Opened { error } => eprintln!("the store is gone: {error}"),
//!     GuardEvent::Closed => eprintln!("the store is back"),
//!     GuardEvent::Degraded { policy, allowed, .. } => eprintln!("{policy:?} answered: {allowed}"),
//!     _ => {}
//! });
//! # let store = MemoryStore::new();
//! let limiter = Limiter::guarded(store, options);
//! let local = OnStoreError::Local("0.25".parse()?);
//! let api = Rule::builder("api").limit("60/1m".parse()?).on_store_error(local).build()?;
//! assert!(limiter.check(&api, "alice")?.allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! None is on by default. Minimum supported Rust version: 1.85.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | `Serialize` and `Deserialize` for rules, `Serialize` for decisions |
//! | `tokio` | `TokioTimer` for [`Limiter::acquire_async`] |
//! | `testing` | the models and suites of our own tests, for your tests too |
//!
//! # Further
//!
//! [Examples]: limits per user, several limits, settling tokens, waiting in line, one program on any store.
//! [`algorithm`] compares the six algorithms, [`rule`] has the policies of a rule, [`ruleset`] overrides per key,
//! [`limiter`] every verb, [`store`] the trait for a store of your own, [`time`] a clock for tests.
//!
//! [Examples]: https://github.com/slidegate/slidegate/tree/main/crates/slidegate/examples
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

pub mod algorithm;
pub mod charge;
pub mod decision;
mod error;
mod few;
pub mod guard;
pub mod key;
pub mod limiter;
pub mod rate;
pub mod receipt;
pub mod rule;
pub mod ruleset;
#[cfg(feature = "serde")]
mod serialization;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;

pub use charge::{Admission, Charge, ChargeError};
pub use decision::{Decision, Verdict};
pub use key::{IntoKey, Key, KeyError, OwnedKey};
pub use limiter::Limiter;
pub use rate::{Rate, RateError};
pub use receipt::{Applied, Receipt, ReceiptError};
pub use rule::{Algorithm, Rule, RuleBuilder, RuleError};
pub use ruleset::{ChargeRequest, ResolveError, Resolved, RuleSet};
pub use store::{CheckError, StoreError, UpdateError};

/// The code of the README runs as a test.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
