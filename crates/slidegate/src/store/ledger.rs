//! What must be remembered of receipts: which were spent, and which states were reset.
//!
//! A record per refund and per reset, none per admission, each kept until it cannot matter any more.

use std::collections::HashMap;

use crate::algorithm::State;
use crate::receipt::{Receipt, ReceiptError, ReceiptId};

/// Most records of each kind.
const RECORDS_MAX: usize = 1 << 20;

/// Records of spent receipts and of resets.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// When the record may be forgotten, by receipt.
    spent: HashMap<ReceiptId, u64>,
    /// When the reset was, and when it may be forgotten, by rule and key.
    resets: HashMap<(Box<str>, Box<str>), (u64, u64)>,
}

impl Ledger {
    pub(super) fn is_spent(&self, id: ReceiptId) -> bool {
        self.spent.contains_key(&id)
    }

    /// Makes sure that one more receipt can be recorded.
    pub(super) fn make_room_for_receipt(&mut self, now_us: u64) -> Result<(), ReceiptError> {
        if self.spent.len() >= RECORDS_MAX {
            self.spent.retain(|_, expires_us| *expires_us > now_us);
        }
        let records = self.spent.len();
        if records < RECORDS_MAX { Ok(()) } else { Err(ReceiptError::RecordsFull { records }) }
    }

    pub(super) fn spend(&mut self, receipt: &Receipt) {
        self.spent.insert(receipt.id(), expires_us(receipt));
    }

    /// Makes sure that one more reset can be recorded.
    pub(super) fn make_room_for_reset(&mut self, now_us: u64) -> Result<(), ReceiptError> {
        if self.resets.len() >= RECORDS_MAX {
            self.resets.retain(|_, (_, expires_us)| *expires_us > now_us);
        }
        let records = self.resets.len();
        if records < RECORDS_MAX { Ok(()) } else { Err(ReceiptError::ResetsFull { records }) }
    }

    pub(super) fn record_reset(&mut self, rule: &str, key: &str, now_us: u64, expires_us: u64) {
        // The clock may have been set back since an earlier reset, which still voids what came before it.
        let record = self.resets.entry((rule.into(), key.into())).or_default();
        *record = (record.0.max(now_us), record.1.max(expires_us));
    }

    /// Whether the state was reset at or after `at_us`, so that a charge of then stands in it no more.
    pub(super) fn reset_since(&self, rule: &str, key: &str, at_us: u64) -> bool {
        // The owned pair is made only where there are resets at all, which is rare.
        !self.resets.is_empty()
            && self.resets.get(&(rule.into(), key.into())).is_some_and(|(reset_us, _)| *reset_us >= at_us)
    }
}

/// The instant from which none of a receipt's charges counts any more.
pub(super) fn expires_us(receipt: &Receipt) -> u64 {
    let places = receipt.charges().iter().flat_map(|charge| charge.places.iter());
    places.map(State::expires_us).max().unwrap_or(0)
}
