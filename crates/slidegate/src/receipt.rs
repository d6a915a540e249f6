//! Receipts: what an admission returns so that it can be refunded or settled.

use thiserror::Error;

use crate::few::Few;
use crate::rule::{Limit, Rule};

/// A settlement may charge at most so many limits above the cost.
const EXCESS_LIMITS_MAX: u64 = 16;

/// Names a receipt within its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiptId(pub(crate) u64, pub(crate) u64);

impl ReceiptId {
    /// An id of two halves, which a store gives out once.
    #[must_use]
    pub fn new(first: u64, second: u64) -> Self {
        Self(first, second)
    }

    /// Its two halves.
    #[must_use]
    pub fn halves(self) -> (u64, u64) {
        (self.0, self.1)
    }
}

/// Where a charge stands in the state of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The limit as it was when the charge was made.
    pub(crate) limit: Limit,
    /// When it was made, in the order of the store: what a state was begun anew after does not fit it.
    pub(crate) order: u64,
    pub(crate) position: Position,
}

impl Place {
    /// The limit as it was when the charge was made.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// When the charge was made, in the order of the store.
    #[must_use]
    pub fn order(&self) -> u64 {
        self.order
    }

    /// Where it stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }
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
pub(crate) struct Standing {
    pub(crate) order: u64,
    pub(crate) position: Position,
}

/// Whose state was charged, and where the charge stands.
#[derive(Debug, Clone)]
enum Charged<'a> {
    /// One limit of a rule that the request still holds: most receipts are such, and dropping them costs
    /// nothing.
    Once {
        rule: &'a Rule,
        key: &'a str,
        standing: Standing,
    },
    Boxed(Box<Boxed<'a>>),
}

#[derive(Debug, Clone)]
struct Boxed<'a> {
    whose: Whose<'a>,
    /// One per limit of the rule.
    standings: Vec<Standing>,
}

#[derive(Debug, Clone)]
enum Whose<'a> {
    ByRequest { rule: &'a Rule, key: &'a str },
    Owned { rule: Box<str>, limits: Box<[Limit]>, key: Box<str> },
}

/// What one state was charged.
#[derive(Debug, Clone)]
pub struct ReceiptCharge<'a> {
    charged: Charged<'a>,
    cost: u64,
}

impl<'a> ReceiptCharge<'a> {
    #[inline]
    pub(crate) fn once(rule: &'a Rule, key: &'a str, cost: u64, standing: Standing) -> Self {
        Self { charged: Charged::Once { rule, key, standing }, cost }
    }

    pub(crate) fn new(rule: &'a Rule, key: &'a str, cost: u64, standings: Few<Standing>) -> Self {
        let standings = match standings {
            Few::One([standing]) => return Self::once(rule, key, cost, standing),
            Few::Many(standings) => standings,
        };
        let boxed = Boxed { whose: Whose::ByRequest { rule, key }, standings };
        Self { charged: Charged::Boxed(Box::new(boxed)), cost }
    }

    /// A charge that stands at these positions, one per limit of its rule, made as the `order`-th of its store.
    #[must_use]
    pub fn at(
        rule: &'a Rule,
        key: &'a str,
        cost: u64,
        order: u64,
        positions: impl IntoIterator<Item = Position>,
    ) -> Self {
        Self::standing(rule, key, cost, positions.into_iter().map(|position| (order, position)))
    }

    /// The same where every limit has an order of its own: (order, position), one per limit of its rule.
    #[must_use]
    pub fn standing(
        rule: &'a Rule,
        key: &'a str,
        cost: u64,
        standings: impl IntoIterator<Item = (u64, Position)>,
    ) -> Self {
        let standings = standings.into_iter().map(|(order, position)| Standing { order, position });
        Self::new(rule, key, cost, standings.collect())
    }

    /// A charge that is read back from where its receipt was written down: the limits as they were, and for each
    /// of them (order, position).
    #[must_use]
    pub fn read_back(
        rule: &str,
        key: &str,
        cost: u64,
        places: impl IntoIterator<Item = (Limit, u64, Position)>,
    ) -> ReceiptCharge<'static> {
        let places = places.into_iter().map(|(limit, order, position)| (limit, Standing { order, position }));
        let (limits, standings): (Vec<_>, _) = places.unzip();
        let whose = Whose::Owned { rule: rule.into(), limits: limits.into(), key: key.into() };
        ReceiptCharge { charged: Charged::Boxed(Box::new(Boxed { whose, standings })), cost }
    }

    /// Name of the rule that was charged.
    #[must_use]
    pub fn rule(&self) -> &str {
        match &self.charged {
            Charged::Once { rule, .. } => rule.name(),
            Charged::Boxed(boxed) => match &boxed.whose {
                Whose::ByRequest { rule, .. } => rule.name(),
                Whose::Owned { rule, .. } => rule,
            },
        }
    }

    /// Who was charged.
    #[must_use]
    pub fn key(&self) -> &str {
        match &self.charged {
            Charged::Once { key, .. } => key,
            Charged::Boxed(boxed) => match &boxed.whose {
                Whose::ByRequest { key, .. } => key,
                Whose::Owned { key, .. } => key,
            },
        }
    }

    /// The limits of the rule, as they were.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        match &self.charged {
            Charged::Once { rule, .. } => rule.limits(),
            Charged::Boxed(boxed) => match &boxed.whose {
                Whose::ByRequest { rule, .. } => rule.limits(),
                Whose::Owned { limits, .. } => limits,
            },
        }
    }

    fn standings(&self) -> &[Standing] {
        match &self.charged {
            Charged::Once { standing, .. } => std::slice::from_ref(standing),
            Charged::Boxed(boxed) => &boxed.standings,
        }
    }

    /// Where the charge stands in the state of every limit.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let standings = self.limits().iter().zip(self.standings());
        standings.map(|(&limit, &Standing { order, position })| Place { limit, order, position })
    }

    /// When it was made, in the order of the store.
    pub(crate) fn order(&self) -> u64 {
        self.standings().first().map_or(0, |standing| standing.order)
    }

    fn to_owned(&self) -> ReceiptCharge<'static> {
        let (rule, key, limits) = (self.rule().into(), self.key().into(), self.limits().into());
        let boxed = Boxed { whose: Whose::Owned { rule, limits, key }, standings: self.standings().to_vec() };
        ReceiptCharge { charged: Charged::Boxed(Box::new(boxed)), cost: self.cost }
    }

    /// Units that were charged.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }
}

impl PartialEq for ReceiptCharge<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rule() == other.rule()
            && self.key() == other.key()
            && self.limits() == other.limits()
            && self.cost == other.cost
            && self.standings() == other.standings()
    }
}

impl Eq for ReceiptCharge<'_> {}

/// Proof of an admission. The first refund or settlement spends it; dropping it does nothing.
///
/// It borrows the rules' names and the keys of the request; [`Receipt::into_owned`] makes one to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt<'a> {
    pub(crate) id: ReceiptId,
    pub(crate) store: u64,
    pub(crate) charges: Few<ReceiptCharge<'a>>,
}

impl<'a> Receipt<'a> {
    /// A receipt of a store that is known by that number, for at least one charge.
    #[must_use]
    pub fn new(id: ReceiptId, store: u64, charges: impl IntoIterator<Item = ReceiptCharge<'a>>) -> Self {
        Self { id, store, charges: charges.into_iter().collect() }
    }

    /// The number that its store is known by.
    #[must_use]
    pub fn store(&self) -> u64 {
        self.store
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ReceiptId {
        self.id
    }

    /// What was charged: one entry per state, in the order of the admission's charges.
    #[must_use]
    pub fn charges(&self) -> &[ReceiptCharge<'a>] {
        &self.charges
    }

    /// The same receipt, independent of the request.
    #[must_use]
    pub fn into_owned(self) -> Receipt<'static> {
        let charges = self.charges.iter().map(ReceiptCharge::to_owned).collect();
        Receipt { id: self.id, store: self.store, charges }
    }

    /// The cost that all its charges have, if it can be settled for `actual`.
    pub fn settled_cost(&self, actual: u64) -> Result<u64, ReceiptError> {
        let mut cost = None;
        for charge in self.charges() {
            let first = *cost.get_or_insert(charge.cost());
            if charge.cost() != first {
                return Err(ReceiptError::UnequalCosts { first, second: charge.cost() });
            }
            let limits = charge.limits().iter().map(Limit::units);
            let excess_max = EXCESS_LIMITS_MAX * limits.min().expect("a rule has at least one limit");
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
