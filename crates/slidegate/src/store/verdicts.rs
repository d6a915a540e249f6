//! Verdicts from what states say.

use crate::algorithm::{Ruling, Usage};
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::rule::Limit;

impl<'a> Verdict<'a> {
    /// What is used of a limit that admits.
    #[inline]
    pub(in crate::store) fn of_usage(charge: &Charge<'a>, limit: &'a Limit, usage: Usage) -> Self {
        Verdict::new(charge, limit).with_usage(usage.used, usage.reset_after_us)
    }

    /// What a limit says to a cost.
    #[inline]
    pub(in crate::store) fn of_ruling(charge: &Charge<'a>, limit: &'a Limit, ruling: Ruling) -> Self {
        Self {
            allowed: ruling.allowed(),
            retry_after_us: ruling.retry_after_us,
            ..Self::of_usage(charge, limit, ruling.usage)
        }
    }
}
