//! Receipts: an admission returns one so that it can be refunded or settled.

use thiserror::Error;

use crate::few::Few;
use crate::key::{Key, OwnedKey};
use crate::rule::Limit;

/// A settlement may charge at most this many limits above the cost.
const EXCESS_LIMITS_MAX: u64 = 16;

/// The id of a receipt within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiptId(u64);

impl ReceiptId {
    /// An id. A store issues each number once.
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

/// The receipt's id and store, fixed when the admission is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptStamp {
    /// The id within the store.
    pub id: ReceiptId,
    /// The number of the store: another store refuses the receipt.
    pub store: u32,
}

/// The place of a charge in the state of one limit, with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChargePlace {
    /// The limit as it was when the charge was made.
    pub limit: Limit,
    /// The sequence number of the charge in the store (in memory, SQLite), or the generation of the state (Redis). A state
    /// that was recreated later does not accept the receipt.
    pub order: u64,
    /// The position in the state.
    pub position: Position,
}

/// The position of a charge in an algorithm's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The stamp of a log entry in microseconds, or the number of a bucket or window.
    At(u64),
    /// A stretch of `gcra`'s line.
    Line {
        /// When it was charged, in microseconds.
        charged_us: u64,
        /// Occupied length after the charge.
        backlog: Backlog,
        /// Units that had been given back before the charge.
        given_back: u64,
    },
}

/// Occupied length of `gcra`'s line, in unit-microseconds.
///
/// In two halves: one number of 128 bits would align every key's state to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog([u64; 2]);

impl Backlog {
    /// A backlog of `unit_us` unit-microseconds.
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

/// The position of a charge in the state of one limit, and its order: a [`ChargePlace`] without the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedPosition {
    /// The sequence number of the charge in the store, or the generation of the state; see [`ChargePlace::order`].
    pub order: u64,
    /// The position in the state.
    pub position: Position,
}

/// The part of a receipt for one state (rule and key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptCharge {
    rule: Box<str>,
    key: OwnedKey,
    cost: u64,
    places: Few<ChargePlace>,
}

impl ReceiptCharge {
    /// `cost` units of a rule for a key, at these places: one per limit of the rule, at least one.
    #[must_use]
    pub fn new(rule: &str, key: Key<'_>, cost: u64, places: impl IntoIterator<Item = ChargePlace>) -> Self {
        Self { rule: rule.into(), key: key.into(), cost, places: places.into_iter().collect() }
    }

    /// Name of the rule that was charged.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Who was charged, with the tag. Of a rule with shards it is the shard that was charged.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        self.key.key()
    }

    /// Units that were charged.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The place of the charge in the state of every limit of the rule.
    #[must_use]
    pub fn places(&self) -> &[ChargePlace] {
        &self.places
    }

    /// The limits of the rule at the time of the charge.
    #[must_use]
    pub fn limits(&self) -> impl ExactSizeIterator<Item = Limit> + Clone + '_ {
        self.places.iter().map(|place| place.limit)
    }
}

/// Proof of an admission. The first refund or settlement spends it; dropping it does nothing.
///
/// It borrows nothing: it can be sent to another task, thread or process.
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

    /// The number of its store.
    #[must_use]
    pub fn store(&self) -> u32 {
        self.stamp.store
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ReceiptId {
        self.stamp.id
    }

    /// The charges: one entry per state, in the order of the admission's charges.
    #[must_use]
    pub fn charges(&self) -> &[ReceiptCharge] {
        &self.charges
    }

    /// The common cost of its charges; an error if it cannot be settled for `actual`.
    pub fn cost_to_settle(&self, actual: u64) -> Result<u64, ReceiptError> {
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

/// The result of a refund, settlement, credit or reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    /// Whether anything was changed: false for a spent or expired receipt.
    pub applied: bool,
    /// Units given back, or charged by a settlement above the cost; summed over the charges.
    pub units: u64,
}

/// Why a receipt was rejected. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiptError {
    /// Another store issued it.
    #[error("receipt: was issued by another store; present it where the request was admitted")]
    Foreign,
    /// It was issued for another rule.
    #[error("receipt: is not of rule `{rule}` but of {issued}; present it for the rule that admitted it")]
    OtherRule {
        /// The rule it was presented for.
        rule: String,
        /// The rules it was issued for.
        issued: String,
    },
    /// A settlement has one actual cost, but the receipt's charges have different costs.
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
    /// The set of spent receipts is full; a refund without a record could be repeated.
    #[error(
        "receipt: {records} spent receipts are on record, which is the most; retry when older ones have expired"
    )]
    RecordsFull {
        /// Records held.
        records: usize,
    },
    /// The rule or the key has its share of the spent receipts, so that others can go on to refund theirs.
    #[error(
        "receipt: {records} spent receipts of {owner} are on record, which is its share; retry when older ones have \
         expired, or raise the memory budget"
    )]
    ShareFull {
        /// Records held.
        records: usize,
        /// `this rule`, `all inline rules` or `this key`.
        owner: &'static str,
    },
}
