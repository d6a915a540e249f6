//! Verdicts from what states say.

use crate::algorithm::{Ruling, Usage};
use crate::decision::Verdict;
use crate::rule::{Limit, Rule};

impl<'a> Verdict<'a> {
    /// What is used of a limit that admits.
    #[inline]
    pub(super) fn of_usage(rule: &'a Rule, limit: &'a Limit, usage: Usage) -> Self {
        Self { used: usage.used, reset_after_us: usage.reset_after_us, ..Verdict::new(rule, limit) }
    }

    /// What a limit says to a cost.
    #[inline]
    pub(super) fn of_ruling(rule: &'a Rule, limit: &'a Limit, ruling: Ruling) -> Self {
        Self {
            allowed: ruling.allowed(),
            retry_after_us: ruling.retry_after_us,
            ..Self::of_usage(rule, limit, ruling.usage)
        }
    }
}
