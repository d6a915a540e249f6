//! Rules: what is limited, how, and by how much.
//!
//! A [`Rule`] is a name, an [`Algorithm`] and one or several [`Limit`]s; all of them must admit.
//! Rules are made by [`Rule::builder`] or, for a rate given with the request itself,
//! [`Rule::inline`]. A rule that exists is valid: every number was checked when it was built.

mod algorithm;
mod builder;
mod decimal;
mod error;
mod limit;
mod policy;

pub use algorithm::{
    Algorithm, AlgorithmError, BUCKETS_MAX, Buckets, ENTRIES_MAX, ENTRIES_MIN, Edge, Entries,
};
pub(crate) use builder::{NameHash, name_hash};
pub use builder::{Rule, RuleBuilder};
pub use decimal::{Decimal, DecimalError};
pub use error::{LIMITS_MAX, NAME_BYTES_MAX, RuleError, SHARDS_MAX};
pub use limit::Limit;
pub use policy::{AtBudget, OnStoreError, TakeOver};
