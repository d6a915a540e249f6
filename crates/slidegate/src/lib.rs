//! Sliding-window rate limiting that holds.
//!
//! By default a limit is never exceeded in any window, wherever it starts; a refusal names the exact
//! instant at which the same request passes; a refused request costs nothing.
//!
//! # A decision
//!
//! A [`Rule`] says how much, a [`Key`] says who, a [`Charge`] is so many units of a rule for a key, and
//! an [`Admission`] is one or several charges that pass together or not at all. A store answers with a
//! [`Decision`] and, if it admits, a [`Receipt`].
//!
//! ```
//! use slidegate::store::MapStore;
//! use slidegate::{Admission, Charge, Key, Rule};
//!
//! let login = Rule::builder("login").limit("5/1m".parse()?).build()?;
//! let attempt = Admission::new(&[Charge { rule: &login, key: Key::new("alice")?, cost: 1 }])?;
//!
//! let mut store = MapStore::new();
//! let now_us = 1_745_000_145_000_000;
//! let first = store.check(now_us, &attempt);
//! assert_eq!((first.decision.used(), first.decision.remaining()), (1, 4));
//! for _ in 0..4 {
//!     store.check(now_us, &attempt);
//! }
//! let refused = store.check(now_us + 1, &attempt).decision;
//! assert!(!refused.allowed());
//! assert_eq!(refused.retry_after().as_micros(), 59_999_999);
//!
//! // The work was not done after all: give the unit back.
//! let receipt = first.receipt.expect("an admission has a receipt");
//! assert!(store.refund(now_us + 1, &receipt)?.applied);
//! assert!(store.check(now_us + 1, &attempt).decision.allowed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! * [`rule`], [`rate`], [`key`], [`charge`], [`decision`], [`receipt`], [`time`]: the nouns. What cannot be
//!   valid cannot be built; every error names the field and the remedy.
//! * [`algorithm`]: the six algorithms as pure functions, in integers.
//! * [`store`]: where states live.
//! * [`testing`]: what all of it is judged with, for your tests too.
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod charge;
pub mod decision;
pub mod key;
pub mod rate;
pub mod receipt;
pub mod rule;
pub mod store;
pub mod testing;
pub mod time;

pub use charge::{Admission, Charge, ChargeError};
pub use decision::{Decision, Verdict};
pub use key::{Key, KeyError};
pub use rate::{Rate, RateError};
pub use receipt::{Applied, Receipt, ReceiptError};
pub use rule::{Algorithm, Rule, RuleBuilder, RuleError};

/// The code of the READMEs runs as a test.
#[cfg(doctest)]
mod readme {
    #[doc = include_str!("../README.md")]
    struct OfTheCrate;
    #[doc = include_str!("../../../README.md")]
    struct OfTheProject;
}
