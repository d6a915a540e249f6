//! One limit of a rule, with all its parameters.

use super::{Algorithm, Decimal};
use crate::rate::Rate;

/// One limit of a rule: its rate, the units that are enforced after headroom, and its algorithm.
///
/// This is the `rule` that the algorithms see. It is copied into receipts, so that a refund knows
/// under which geometry its charge was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limit {
    rate: Rate,
    units: u64,
    algorithm: Algorithm,
}

impl Limit {
    /// A limit that enforces `rate` less `headroom`, and always at least one unit.
    #[must_use]
    pub fn new(rate: Rate, headroom: Decimal, algorithm: Algorithm) -> Self {
        let units = (rate.limit() - headroom.of_rounded_up(rate.limit())).max(1);
        Self { rate, units, algorithm }
    }

    /// The same limit enforcing a share of its units, rounded down and at least 1.
    pub(crate) fn at_share(&self, share: Decimal) -> Self {
        Self { units: share.of_rounded_down(self.units).max(1), ..*self }
    }

    /// The limit of one of `shards` shards: an equal part of the units, rounded down; `None` if nothing is left.
    pub(crate) fn of_shard(&self, shards: u16) -> Option<Self> {
        let units = self.units / u64::from(shards);
        (units > 0).then_some(Self { units, ..*self })
    }

    /// A limit that enforces exactly `units` of a rate; `None` if the rate allows fewer.
    pub(crate) fn enforcing(rate: Rate, units: u64, algorithm: Algorithm) -> Option<Self> {
        (1..=rate.limit()).contains(&units).then_some(Self { rate, units, algorithm })
    }

    /// The rate as configured, before headroom.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Units that are enforced: the rate's limit less headroom.
    #[must_use]
    #[inline]
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Length of the window in microseconds.
    #[must_use]
    #[inline]
    pub fn window_us(&self) -> u64 {
        self.rate.window_us()
    }

    /// The algorithm of the window.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Width of a sub-bucket in microseconds, rounded up; the whole window for algorithms without buckets.
    #[must_use]
    pub fn bucket_us(&self) -> u64 {
        match self.algorithm {
            Algorithm::SlidingBuckets(buckets, _) => self.window_us().div_ceil(u64::from(buckets.get())),
            _ => self.window_us(),
        }
    }

    /// Whether a state of `older` can continue under this limit: same algorithm, window and bucket width.
    /// The limit itself, the edge and the number of entries may differ.
    #[must_use]
    pub fn keeps_state_of(&self, older: &Self) -> bool {
        self.algorithm.name() == older.algorithm.name()
            && self.window_us() == older.window_us()
            && self.bucket_us() == older.bucket_us()
    }
}

#[cfg(test)]
impl Limit {
    /// A limit without headroom.
    pub(crate) fn of(rate: &str, algorithm: Algorithm) -> Self {
        Self::new(rate.parse().unwrap(), Decimal::ZERO, algorithm)
    }
}
