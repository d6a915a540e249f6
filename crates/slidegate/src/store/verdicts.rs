//! Verdicts from usages and rulings of states.

use crate::algorithm::{Ruling, Usage};
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::rule::Limit;

impl<'a> Verdict<'a> {
    /// An admission with this usage.
    #[inline]
    pub(in crate::store) fn of_usage(charge: &Charge<'a>, limit: &'a Limit, usage: Usage) -> Self {
        Verdict::new(charge, limit).with_usage(usage.used, usage.reset_after_us)
    }

    /// The verdict of a ruling.
    #[inline]
    pub(in crate::store) fn of_ruling(charge: &Charge<'a>, limit: &'a Limit, ruling: Ruling) -> Self {
        Self {
            allowed: ruling.allowed(),
            retry_after_us: ruling.retry_after_us,
            ..Self::of_usage(charge, limit, ruling.usage)
        }
    }
}
