//! Receipts: what an admission returns so that it can be refunded or settled.

use thiserror::Error;

use crate::few::Few;
use crate::rule::Limit;

/// A settlement may charge at most so many limits above the cost.
const EXCESS_LIMITS_MAX: u64 = 16;

/// Names a receipt within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiptId(u64);

impl ReceiptId {
    /// An id that a store gives out once.
    #[must_use]
    #[inline]
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// What all receipts of one admission have in common: fixed when it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptStamp {
    /// Names the receipt within its store.
    pub id: ReceiptId,
    /// The number that the store is known by: another store refuses the receipt.
    pub store: u32,
}

/// Where a charge stands in the state of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChargePlace {
    /// The limit as it was when the charge was made.
    pub limit: Limit,
    /// When it was made, in the order of the store: what a state was begun anew after does not fit it.
    pub order: u64,
    /// Where it stands.
    pub position: Position,
}

/// The algorithm's own coordinates of a charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The stamp of a log entry in microseconds, or the number of a bucket or window.
    At(u64),
    /// A stretch of the line that `gcra` keeps.
    Line {
        /// When it was charged, in microseconds.
        charged_us: u64,
        /// What was occupied then, the charge included.
        backlog: Backlog,
        /// Units that had been given back until then.
        given_back: u64,
    },
}

/// How much of the line that `gcra` keeps is occupied, in unit-microseconds.
///
/// In two halves: as one number of 128 bits it would make every key's state a multiple of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog([u64; 2]);

impl Backlog {
    /// So many unit-microseconds.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "cut in two on purpose")]
    pub fn new(unit_us: u128) -> Self {
        Self([unit_us as u64, (unit_us >> 64) as u64])
    }

    /// In unit-microseconds.
    #[must_use]
    pub fn get(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }
}

impl Position {
    /// The stamp or number; `None` for a stretch of a line.
    #[must_use]
    pub fn at(self) -> Option<u64> {
        match self {
            Self::At(at) => Some(at),
            Self::Line { .. } => None,
        }
    }
}

/// A place without its limit, which is the rule's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedPosition {
    /// When the charge was made, in the order of the store.
    pub order: u64,
    /// Where it stands.
    pub position: Position,
}

/// What one state was charged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptCharge {
    rule: Box<str>,
    key: Box<str>,
    cost: u64,
    places: Few<ChargePlace>,
}

impl ReceiptCharge {
    /// So many units of a rule for a key, at these places: one per limit of the rule, at least one.
    #[must_use]
    pub fn new(rule: &str, key: &str, cost: u64, places: impl IntoIterator<Item = ChargePlace>) -> Self {
        Self { rule: rule.into(), key: key.into(), cost, places: places.into_iter().collect() }
    }

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

    /// Where the charge stands in the state of every limit of the rule.
    #[must_use]
    pub fn places(&self) -> &[ChargePlace] {
        &self.places
    }

    /// The limits of the rule, as they were.
    #[must_use]
    pub fn limits(&self) -> impl ExactSizeIterator<Item = Limit> + Clone + '_ {
        self.places.iter().map(|place| place.limit)
    }
}

/// Proof of an admission. The first refund or settlement spends it; dropping it does nothing.
///
/// It borrows nothing: it can be sent to another task or thread, and on wires to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    stamp: ReceiptStamp,
    charges: Few<ReceiptCharge>,
}

impl Receipt {
    /// A receipt for at least one charge.
    #[must_use]
    pub fn new(stamp: ReceiptStamp, charges: impl IntoIterator<Item = ReceiptCharge>) -> Self {
        Self { stamp, charges: charges.into_iter().collect() }
    }

    /// The number that its store is known by.
    #[must_use]
    pub fn store(&self) -> u32 {
        self.stamp.store
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ReceiptId {
        self.stamp.id
    }

    /// What was charged: one entry per state, in the order of the admission's charges.
    #[must_use]
    pub fn charges(&self) -> &[ReceiptCharge] {
        &self.charges
    }

    /// The cost that all its charges have, if it can be settled for `actual`.
    pub fn settled_cost(&self, actual: u64) -> Result<u64, ReceiptError> {
        let mut cost = None;
        for charge in self.charges() {
            let first = *cost.get_or_insert(charge.cost());
            if charge.cost() != first {
                return Err(ReceiptError::UnequalCosts { first, second: charge.cost() });
            }
            let units_min = charge.limits().map(|limit| limit.units()).min();
            let excess_max = EXCESS_LIMITS_MAX * units_min.expect("a rule has at least one limit");
            let excess = actual.saturating_sub(charge.cost());
            if excess > excess_max {
                return Err(ReceiptError::Excess { rule: charge.rule().to_owned(), excess, excess_max });
            }
        }
        Ok(cost.expect("a receipt has at least one charge"))
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
    /// The record of spent receipts is full; refunding without a record could refund twice.
    #[error(
        "receipt: {records} spent receipts are on record, which is the most; retry when older ones have expired"
    )]
    RecordsFull {
        /// Records held.
        records: usize,
    },
}
