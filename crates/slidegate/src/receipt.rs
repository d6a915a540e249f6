//! Receipts: what an admission returns so that it can be refunded or settled.

use std::sync::Arc;

use thiserror::Error;

use crate::rule::Limit;

/// Names a receipt; random, so that it cannot be guessed or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReceiptId(pub(crate) u128);

/// Where a charge stands in the state of one limit.
///
/// Which of the two numbers mean what is the algorithm's affair: a stamp, a window number, a bucket
/// number, or the theoretical arrival time after the charge and its fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub(crate) limit: Limit,
    pub(crate) charged_us: u64,
    pub(crate) position: Position,
}

/// The algorithm's own coordinates of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Stamp in microseconds, window number, bucket number, or whole microseconds of the arrival time.
    pub at: u64,
    /// Numerator of the arrival time's fraction of a microsecond; the limit is its denominator.
    pub fraction: u64,
    /// What the state had given back when the charge was made, which moves arrival times; 0 elsewhere.
    pub given_back: u64,
}

/// What one state was charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptCharge {
    pub(crate) rule: Arc<str>,
    pub(crate) key: Box<str>,
    pub(crate) cost: u64,
    pub(crate) places: Box<[Place]>,
}

impl ReceiptCharge {
    /// Name of the rule that was charged.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Who was charged.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Units that were charged.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

/// Proof of an admission. The first refund or settlement spends it; dropping it does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub(crate) id: ReceiptId,
    pub(crate) store: u64,
    pub(crate) at_us: u64,
    pub(crate) charges: Box<[ReceiptCharge]>,
}

impl Receipt {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> ReceiptId {
        self.id
    }

    /// What was charged: one entry per state, in the order of the admission's charges.
    #[must_use]
    pub fn charges(&self) -> &[ReceiptCharge] {
        &self.charges
    }

    /// Checks that it was issued for a charge on `rule`.
    pub fn expect_rule(&self, rule: &str) -> Result<(), ReceiptError> {
        if self.charges.iter().any(|charge| charge.rule() == rule) {
            return Ok(());
        }
        Err(ReceiptError::OtherRule {
            rule: rule.to_owned(),
            issued: self.charges.iter().map(ReceiptCharge::rule).collect::<Vec<_>>().join(", "),
        })
    }
}

/// What a refund, a settlement, a credit or a reset did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Whether anything was done: false for a receipt that was spent or has expired.
    pub applied: bool,
    /// Units given back, or charged by a settlement above the cost; summed over the charges.
    pub units: u64,
}

/// Why a receipt is not accepted. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// Another store issued it.
    #[error("receipt: was issued by another store; present it where the request was admitted")]
    Foreign,
    /// It is not of the rule it was presented for.
    #[error("receipt: is not of rule `{rule}` but of {issued}; present it for the rule that admitted it")]
    OtherRule {
        /// The rule it was presented for.
        rule: String,
        /// The rules it was issued for.
        issued: String,
    },
    /// A settlement names one number of units, but the receipt's charges cost different ones.
    #[error(
        "actual: the receipt's charges cost {first} and {second}; settle needs equal costs, refund and check instead"
    )]
    UnequalCosts {
        /// Cost of the first charge.
        first: u64,
        /// Another cost.
        second: u64,
    },
    /// A settlement of more than sixteen limits above the cost.
    #[error(
        "actual: {excess} units above the charge of rule `{rule}`, at most {excess_max} (16 limits) can be settled"
    )]
    Excess {
        /// The rule.
        rule: String,
        /// Units above the charge.
        excess: u64,
        /// The most that can be settled.
        excess_max: u64,
    },
    /// The record of resets is full; resetting without a record would let earlier receipts give back
    /// what was charged after it.
    #[error("reset: {records} resets are on record, which is the most; retry when older ones have expired")]
    ResetsFull {
        /// Records held.
        records: usize,
    },
    /// The record of spent receipts is full; refunding without a record could refund twice.
    #[error(
        "receipt: {records} spent receipts are on record, which is the most; retry when older ones have expired"
    )]
    RecordsFull {
        /// Records held.
        records: usize,
    },
}
