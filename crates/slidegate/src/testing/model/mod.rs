//! A slow and obvious model of the six algorithms and of a store, to test the real ones against.
//!
//! A [`LimitModel`] is one limit for one key; a [`ModelStore`] keeps one per limit of every (rule, key). They
//! keep what was charged as plain lists and recompute every answer from them, in exact arithmetic that is
//! far wider than any real state. No wait is calculated: [`Ruling`](crate::algorithm::Ruling)s and
//! [`Usage`](crate::algorithm::Usage)s find their instants by asking again and again, which is sound
//! because use never grows while nobody spends.
//!
//! It shares the rules, limits and admissions with the real code. Rejected: sharing helpers of the algorithms, as a
//! mistake there would be in both.

mod algorithm_model;
mod amount;
mod charge_sums;
mod compact_log;
mod decision;
mod fixed_window;
mod gcra;
mod key_model;
mod limit_model;
mod receipt;
mod sliding_buckets;
mod sliding_counter;
mod sliding_log;
mod store;

pub use decision::{ModelDecision, ModelVerdict};
pub use limit_model::{LimitModel, ModelPlace};
pub use receipt::ModelReceipt;
pub use store::ModelStore;

#[cfg(test)]
mod samples {
    //! Helpers of the models' tests.

    use crate::rule::{Algorithm, Decimal, Limit};

    /// Microseconds of a second.
    pub(super) const SECOND_US: u64 = 1_000_000;

    /// A limit such as `5/1m`, without headroom.
    pub(super) fn limit(rate: &str, algorithm: Algorithm) -> Limit {
        Limit::new(rate.parse().unwrap(), Decimal::ZERO, algorithm)
    }
}
