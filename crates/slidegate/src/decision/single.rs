//! The compact form of a decision, for one charge of a rule with one limit: by far the most common.
//!
//! It is written once, into the caller's return slot, and holds the parts of a receipt, which is built on demand.

use super::verdict::{Basis, Verdict};
use crate::charge::Charge;
use crate::receipt::{Backlog, OrderedPosition, Position, ReceiptId, ReceiptStamp};

/// One charge and its answer.
#[derive(Debug, Clone)]
pub(super) struct Single<'a> {
    pub(super) charge: Charge<'a>,
    pub(super) answer: SingleAnswer,
}

/// The answer to a single charge. The store's number has 32 bits, so that it fits beside the tag.
#[derive(Debug, Clone, Copy)]
pub(super) enum SingleAnswer {
    /// Admitted and charged, at a stamp or in a numbered window or bucket.
    ChargedAt { store: u32, id: ReceiptId, order: u64, at: u64, used: u64, reset_after_us: u64 },
    /// Admitted and charged, on the line of `gcra`: what is used follows from the backlog.
    ChargedLine {
        store: u32,
        id: ReceiptId,
        order: u64,
        charged_us: u64,
        backlog: Backlog,
        given_back: u64,
        reset_after_us: u64,
    },
    /// Admitted and not charged: a peek.
    Uncharged { used: u64, reset_after_us: u64 },
    /// Denied. The wait is 0 if a shadow rule can never admit the cost.
    Denied { used: u64, retry_after_us: u64, reset_after_us: u64 },
}

impl SingleAnswer {
    #[inline]
    pub(super) fn charged(
        used: u64,
        reset_after_us: u64,
        stamp: ReceiptStamp,
        position: OrderedPosition,
    ) -> Self {
        let (ReceiptStamp { id, store }, OrderedPosition { order, position }) = (stamp, position);
        match position {
            Position::At(at) => Self::ChargedAt { store, id, order, at, used, reset_after_us },
            Position::Line { charged_us, backlog, given_back } => {
                Self::ChargedLine { store, id, order, charged_us, backlog, given_back, reset_after_us }
            }
        }
    }

    /// The parts of its receipt, if it was charged.
    pub(super) fn receipt(&self) -> Option<(ReceiptStamp, OrderedPosition)> {
        match *self {
            Self::ChargedAt { store, id, order, at, .. } => {
                Some((ReceiptStamp { id, store }, OrderedPosition { order, position: Position::At(at) }))
            }
            Self::ChargedLine { store, id, order, charged_us, backlog, given_back, .. } => {
                let position = Position::Line { charged_us, backlog, given_back };
                Some((ReceiptStamp { id, store }, OrderedPosition { order, position }))
            }
            Self::Uncharged { .. } | Self::Denied { .. } => None,
        }
    }
}

impl<'a> Single<'a> {
    pub(super) fn verdict(&self) -> Verdict<'a> {
        let limit = &self.charge.rule.limits()[0];
        let verdict = Verdict::on(self.charge, Basis::Counted(limit));
        match self.answer {
            SingleAnswer::ChargedAt { used, reset_after_us, .. }
            | SingleAnswer::Uncharged { used, reset_after_us } => verdict.with_usage(used, reset_after_us),
            SingleAnswer::ChargedLine { backlog, reset_after_us, .. } => {
                let used = backlog.get().div_ceil(limit.window_us().into());
                verdict.with_usage(u64::try_from(used).unwrap_or(u64::MAX), reset_after_us)
            }
            SingleAnswer::Denied { used, retry_after_us, reset_after_us } => {
                verdict.with_usage(used, reset_after_us).denied(retry_after_us)
            }
        }
    }

    #[inline]
    pub(super) fn allowed(&self) -> bool {
        !matches!(self.answer, SingleAnswer::Denied { .. }) || self.charge.rule.shadow()
    }
}
