//! Sliding-window rate limiting that holds.
//!
//! By default a limit is never exceeded in any window, wherever it starts; a refusal names the exact
//! instant at which the same request passes; a refused request costs nothing.
//!
//! # A decision
//!
//! A [`Rule`] says how much, a [`Key`] says who, and a [`Charge`] is a number of units of a rule for a key. A
//! [`Limiter`] answers one or several charges, which pass together or not at all, with a [`Decision`].
//!
//! ```
//! use slidegate::{Limiter, Rule};
//!
//! let limiter = Limiter::in_memory();
//! let decision = limiter.check(&Rule::new("login", "5/1m")?, "alice")?.into_owned();
//! # assert_eq!(decision.remaining(), Some(4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Two rules at once, with headroom below the upstream's own limit:
//!
//! ```
//! use slidegate::{Limiter, Rule};
//!
//! let limiter = Limiter::in_memory();
//! let quota = Rule::builder("quota").limit("10000/24h".parse()?).headroom("0.05".parse()?).build()?;
//! let search = Rule::new("search", "500/10m")?;
//! let decision = limiter.check_all(&[quota.charge("key1", 100)?, search.charge("key1", 100)?])?;
//! assert_eq!((decision.rule(), decision.remaining()), ("search", Some(400)));
//!
//! // The call was not made after all: give the units back.
//! let receipt = decision.receipt().expect("an admission has a receipt");
//! assert_eq!(limiter.refund(&receipt)?.units, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where states live
//!
//! [`Limiter::in_memory`] keeps them in this process. `Limiter::new(SqliteStore::open(path)?)` (crate
//! `slidegate-sqlite`) keeps them in a file that processes share, `Limiter::new(RedisStore::connect(url).await?)`
//! (crate `slidegate-redis`) in a Redis that a fleet shares. The `_async` verbs are the same on all of them; the crate
//! `slidegate-stores` opens a store by its URL.
//!
//! # The parts
//!
//! * [`rule`], [`rate`], [`key`], [`charge`], [`decision`], [`receipt`], [`time`]: the nouns. What cannot be
//!   valid cannot be built; every error names the field and the remedy.
//! * [`algorithm`]: the six algorithms as pure functions, in integers.
//! * [`limiter`]: the verbs, the outage policy, waiting. [`store`]: where states live.
//! * `testing` (feature `testing`): the models and suites of our own tests, for your tests too.
#![deny(unsafe_code)]

pub mod algorithm;
pub mod charge;
pub mod decision;
mod error;
mod few;
mod guard;
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
pub use key::{Key, KeyError};
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
