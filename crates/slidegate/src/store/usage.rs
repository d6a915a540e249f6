//! The usage of a limit.

use std::time::Duration;

use crate::rule::Limit;

/// The usage of one limit of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUsage {
    /// The limit.
    pub limit: Limit,
    /// Units in use, rounded up.
    pub used: u64,
    /// Time until nothing is used.
    pub reset_after: Duration,
}

impl LimitUsage {
    /// `used` units of a limit, the last of them for `reset_after` more.
    #[must_use]
    pub fn new(limit: Limit, used: u64, reset_after: Duration) -> Self {
        Self { limit, used, reset_after }
    }
}
