//! The ids of spent receipts: a record per refund, none per admission, each kept until its receipt has
//! expired.

use std::collections::{BTreeSet, HashSet};

use crate::algorithm::State;
use crate::receipt::{Receipt, ReceiptError, ReceiptId};

/// Most records.
const RECORDS_MAX: usize = 1 << 20;

/// The ids of spent receipts, until they expire.
#[derive(Debug, Default)]
pub(super) struct SpentReceipts {
    ids: HashSet<ReceiptId>,
    by_expiry: BTreeSet<(u64, ReceiptId)>,
    /// The latest time of a call. Records that expired by then were dropped, so their receipts stay expired
    /// even if the clock is set back.
    latest_us: u64,
}

impl SpentReceipts {
    /// Whether the receipt is neither spent nor expired at `now_us`.
    pub(super) fn accepts(&mut self, now_us: u64, receipt: &Receipt) -> bool {
        self.latest_us = self.latest_us.max(now_us);
        while let Some(&(expired_us, id)) = self.by_expiry.first() {
            if expired_us > self.latest_us {
                break;
            }
            self.by_expiry.pop_first();
            self.ids.remove(&id);
        }
        !self.ids.contains(&receipt.id()) && State::receipt_expires_us(receipt) > self.latest_us
    }

    /// Checks that there is room for one more record.
    pub(super) fn make_room(&self) -> Result<(), ReceiptError> {
        let records = self.ids.len();
        if records < RECORDS_MAX { Ok(()) } else { Err(ReceiptError::RecordsFull { records }) }
    }

    pub(super) fn spend(&mut self, receipt: &Receipt) {
        self.ids.insert(receipt.id());
        self.by_expiry.insert((State::receipt_expires_us(receipt), receipt.id()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::{ChargePlace, Position, ReceiptCharge, ReceiptStamp};
    use crate::rule::Rule;

    /// A receipt that expires ten seconds after `charged_us`.
    fn receipt(id: u64, charged_us: u64) -> Receipt {
        let rule = Rule::builder("r").limit("1/10s".parse().unwrap()).build().unwrap();
        let place = ChargePlace { limit: rule.limits()[0], order: 0, position: Position::At(charged_us) };
        let stamp = ReceiptStamp { id: ReceiptId::new(id), store: 0 };
        Receipt::new(stamp, [ReceiptCharge::new("r", "k", 1, [place])])
    }

    #[test]
    fn records_are_bounded_and_dropped_when_they_expire() {
        let mut spent = SpentReceipts::default();
        for id in 0..RECORDS_MAX as u64 {
            spent.spend(&receipt(id, id));
        }
        assert_eq!(spent.make_room(), Err(ReceiptError::RecordsFull { records: RECORDS_MAX }));
        assert!(!spent.accepts(10_000_000, &receipt(1, 1)), "still on record");
        assert_eq!(spent.make_room(), Ok(()), "the first has expired");
        assert_eq!(spent.ids.len(), RECORDS_MAX - 1);
    }

    #[test]
    fn an_expired_receipt_stays_expired() {
        let mut spent = SpentReceipts::default();
        spent.spend(&receipt(1, 5));
        assert!(spent.accepts(20_000_000, &receipt(2, 15_000_000)), "the clock leaps ahead");
        assert!(!spent.accepts(6, &receipt(1, 5)), "and is set back: its record is gone, so it is refused");
    }
}
