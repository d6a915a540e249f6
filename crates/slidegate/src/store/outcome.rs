//! What a store answers.

use std::time::Duration;

use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::rule::Limit;

/// A decision and, for an admission, its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// The answer.
    pub decision: Decision<'a>,
    /// Present if something was charged.
    pub receipt: Option<Receipt<'a>>,
}

/// One limit of a rule and what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitUsage {
    /// The limit.
    pub limit: Limit,
    /// Units in use, rounded up.
    pub used: u64,
    /// Time until nothing is used.
    pub reset_after: Duration,
}
