//! Sliding-window rate limiting that holds.
//!
//! By default a limit is never exceeded in any window, wherever it starts; a refusal names the exact
//! instant at which the same request passes; a refused request costs nothing.
//!
//! # A decision
//!
//! A [`Rule`] says how much, a [`Key`] says who, and a [`Charge`] is so many units of a rule for a key. A
//! [`Limiter`] answers one or several charges, which pass together or not at all, with a [`Decision`] and,
//! if it admits, a [`Receipt`].
//!
//! ```
//! use slidegate::{Charge, Key, Limiter, Rule};
//!
//! let quota = Rule::builder("quota").limit("10000/24h".parse()?).headroom("0.05".parse()?).build()?;
//! let search = Rule::builder("search").limit("500/10m".parse()?).build()?;
//! let limiter = Limiter::in_memory();
//!
//! let key = Key::new("yt:quota:key1")?;
//! let call = [Charge { rule: &quota, key, cost: 100 }, Charge { rule: &search, key, cost: 100 }];
//! let admitted = limiter.check(&call)?;
//! assert_eq!((admitted.decision.rule(), admitted.decision.remaining()), ("search", 400));
//!
//! // The call was not made after all: give the units back.
//! let receipt = admitted.receipt.expect("an admission has a receipt");
//! assert_eq!(limiter.refund(&receipt)?.units, 200);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! * [`rule`], [`rate`], [`key`], [`charge`], [`decision`], [`receipt`], [`time`]: the nouns. What cannot be
//!   valid cannot be built; every error names the field and the remedy.
//! * [`algorithm`]: the six algorithms as pure functions, in integers.
//! * [`store`]: where states live. [`limiter`]: a store and its clock; those who wait for admission.
//! * [`testing`]: what all of it is judged with, for your tests too.
#![deny(unsafe_code)]

pub mod algorithm;
pub mod charge;
pub mod decision;
mod few;
mod guard;
pub mod key;
pub mod limiter;
pub mod rate;
pub mod receipt;
pub mod rule;
pub mod ruleset;
pub mod store;
pub mod testing;
pub mod time;

pub use charge::{Admission, Charge, ChargeError};
pub use decision::{Decision, Verdict};
pub use key::{Key, KeyError};
pub use limiter::{AcquireError, CheckError, Limiter};
pub use rate::{Rate, RateError};
pub use receipt::{Applied, Receipt, ReceiptError};
pub use rule::{Algorithm, Rule, RuleBuilder, RuleError};
pub use ruleset::{ChargeRequest, ResolveError, Resolved, RuleSet};

/// The code of the README runs as a test.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct OfTheCrate;
}
