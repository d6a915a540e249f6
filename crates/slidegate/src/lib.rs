//! Sliding-window rate limiting that holds.
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
