//! Spent receipts: a record per refund or settlement, none per admission, each kept until its receipt has expired.
//!
//! Records count in the memory budget, and have shares of it, so that no rule and no key can keep others from refunds.
//! A record counts for the rule and the key of its receipt's first charge; all inline rules count as one. Within its
//! share a record is made even if keys have spent the budget: a refund must not wait for them, and where old keys are
//! evicted for new ones, they always have. Rejected: dropping the oldest records instead of refusing a refund, because
//! their receipts would work a second time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::budget::Budget;
use crate::algorithm::State;
use crate::receipt::{Receipt, ReceiptError, ReceiptId};
use crate::rule::{Rule, name_hash};

/// A record in the budget's count: its place in the tree, the count of its key, and room for both to grow.
const RECORD_BYTES: usize = 128;
/// Records take at most the budget divided by this.
const BUDGET_SHARE: u64 = 4;
/// A rule has at most all records divided by this.
const RULE_SHARE: u64 = 2;
/// A key has at most the records of a rule divided by this.
const KEY_SHARE: u64 = 8;
/// The owner of the records of all inline rules, which hostile requests can invent.
const INLINE: u64 = 0;

/// The rule and the key for which a record counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordOwner {
    rule: u64,
    /// Of the key under this rule.
    key: u64,
}

impl RecordOwner {
    /// The owner of the record of `receipt`; `fingerprint` is that of a key.
    pub(super) fn of(receipt: &Receipt, fingerprint: impl Fn(&str) -> u64) -> Self {
        let charge = receipt.charges().first().expect("a receipt has at least one charge");
        let hash = name_hash(charge.rule()).0.max(1);
        let rule = if Rule::is_inline_name(charge.rule()) { INLINE } else { hash };
        Self { rule, key: hash ^ fingerprint(charge.key().identity()) }
    }
}

/// The ids of spent receipts, until they expire.
#[derive(Debug, Default)]
pub(super) struct SpentReceipts {
    /// By expiry, which follows from the receipt.
    records: BTreeMap<(u64, ReceiptId), RecordOwner>,
    by_rule: HashMap<u64, u64>,
    by_key: HashMap<u64, u64>,
    /// The latest time of a call. Records that expired by then may be dropped, so their receipts stay expired
    /// even if the clock is set back.
    latest_us: u64,
}

impl SpentReceipts {
    /// Number of records.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Drops at most `count` records that have expired by `now_us`.
    pub(super) fn drop_expired(&mut self, now_us: u64, count: usize, budget: &Budget) {
        self.latest_us = self.latest_us.max(now_us);
        for _ in 0..count {
            let Some(first) = self.records.first_entry() else { break };
            if first.key().0 > self.latest_us {
                break;
            }
            let owner = first.remove();
            decrement(&mut self.by_rule, owner.rule);
            decrement(&mut self.by_key, owner.key);
            budget.give(RECORD_BYTES);
        }
        if self.by_key.len() < self.by_key.capacity() / 4 {
            self.by_key.shrink_to(self.by_key.len() * 2);
        }
    }

    /// Whether the receipt is neither spent nor expired.
    pub(super) fn accepts(&self, receipt: &Receipt) -> bool {
        let expires_us = State::receipt_expires_us(receipt);
        expires_us > self.latest_us && !self.records.contains_key(&(expires_us, receipt.id()))
    }

    /// Takes the memory of one more record, for [`SpentReceipts::spend`] or [`SpentReceipts::give_room`].
    pub(super) fn take_room(&self, owner: RecordOwner, budget: &Budget) -> Result<(), ReceiptError> {
        let records_max = budget.bytes() / BUDGET_SHARE / RECORD_BYTES as u64;
        let rule_max = (records_max / RULE_SHARE).max(1);
        let key_max = (rule_max / KEY_SHARE).max(1);
        let held = |counts: &HashMap<u64, u64>, owner| counts.get(&owner).copied().unwrap_or(0);
        let (of_rule, of_key) = (held(&self.by_rule, owner.rule), held(&self.by_key, owner.key));
        if of_key >= key_max {
            return Err(share_full(of_key, "this key"));
        }
        if of_rule >= rule_max {
            let owner = if owner.rule == INLINE { "all inline rules" } else { "this rule" };
            return Err(share_full(of_rule, owner));
        }
        let records = self.records.len();
        if records as u64 >= records_max {
            return Err(ReceiptError::RecordsFull { records });
        }
        budget.take_anyway(RECORD_BYTES);
        Ok(())
    }

    /// Gives back the memory of a record that is not made.
    pub(super) fn give_room(budget: &Budget) {
        budget.give(RECORD_BYTES);
    }

    /// Records the receipt as spent; its memory was taken.
    pub(super) fn spend(&mut self, receipt: &Receipt, owner: RecordOwner) {
        *self.by_rule.entry(owner.rule).or_default() += 1;
        *self.by_key.entry(owner.key).or_default() += 1;
        self.records.insert((State::receipt_expires_us(receipt), receipt.id()), owner);
    }
}

fn share_full(records: u64, owner: &'static str) -> ReceiptError {
    ReceiptError::ShareFull { records: usize::try_from(records).unwrap_or(usize::MAX), owner }
}

fn decrement(counts: &mut HashMap<u64, u64>, owner: u64) {
    if let Entry::Occupied(mut count) = counts.entry(owner) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::receipt::{ChargePlace, Position, ReceiptCharge, ReceiptStamp};
    use crate::rule::Algorithm;
    use crate::rule::Limit;

    /// A receipt that expires ten seconds after `charged_us`.
    fn receipt(rule: &str, key: &str, id: u64, charged_us: u64) -> Receipt {
        let limit = Limit::of("1/10s", Algorithm::SlidingLog);
        let place = ChargePlace { limit, order: 0, position: Position::At(charged_us) };
        let stamp = ReceiptStamp { id: ReceiptId::new(id), store: 0 };
        Receipt::new(stamp, [ReceiptCharge::new(rule, Key::new(key).unwrap(), 1, [place])])
    }

    /// Any function will do that tells the keys of a test apart.
    fn fingerprint(key: &str) -> u64 {
        name_hash(key).0
    }

    fn spend(spent: &mut SpentReceipts, budget: &Budget, receipt: &Receipt) -> Result<(), ReceiptError> {
        let owner = RecordOwner::of(receipt, fingerprint);
        spent.take_room(owner, budget)?;
        spent.spend(receipt, owner);
        Ok(())
    }

    /// Spends receipts of new keys until none is accepted.
    fn fill(spent: &mut SpentReceipts, budget: &Budget, rule: &str) -> (u64, ReceiptError) {
        for number in 0.. {
            let id = name_hash(rule).0.wrapping_add(number) >> 12;
            if let Err(full) = spend(spent, budget, &receipt(rule, &format!("key:{number}"), id, number)) {
                return (number, full);
            }
        }
        unreachable!("there are not so many records");
    }

    #[test]
    fn a_key_and_a_rule_leave_records_to_others() {
        // Room for 2,048 records.
        let (mut spent, budget) = (SpentReceipts::default(), Budget::new(1 << 20));
        for id in 0..128 {
            spend(&mut spent, &budget, &receipt("api", "busy", id, id)).unwrap();
        }
        let full = spend(&mut spent, &budget, &receipt("api", "busy", 500, 500)).unwrap_err();
        assert_eq!(full, ReceiptError::ShareFull { records: 128, owner: "this key" });
        spend(&mut spent, &budget, &receipt("other", "busy", 501, 500)).unwrap();
        let (more, full) = fill(&mut spent, &budget, "api");
        assert_eq!(
            (more, full),
            (1_024 - 128, ReceiptError::ShareFull { records: 1_024, owner: "this rule" })
        );
        assert_eq!(fill(&mut spent, &budget, "other").0, 1_023);
        let (others, full) = fill(&mut spent, &budget, "third");
        assert_eq!((others, full), (0, ReceiptError::RecordsFull { records: 2_048 }));
        assert_eq!(budget.taken(), 2_048 * 128);
    }

    #[test]
    fn all_inline_rules_have_the_share_of_one() {
        let (mut spent, budget) = (SpentReceipts::default(), Budget::new(1 << 20));
        let (first, _) = fill(&mut spent, &budget, "sliding-log/60s");
        assert_eq!(first, 1_024);
        let (second, full) = fill(&mut spent, &budget, "gcra/61s");
        assert_eq!(
            (second, full),
            (0, ReceiptError::ShareFull { records: 1_024, owner: "all inline rules" })
        );
        assert_eq!(fill(&mut spent, &budget, "api").0, 1_024);
    }

    #[test]
    fn records_are_dropped_when_they_expire_a_few_at_a_time() {
        let (mut spent, budget) = (SpentReceipts::default(), Budget::new(1 << 20));
        let (count, _) = fill(&mut spent, &budget, "api");
        assert!(!spent.accepts(&receipt("api", "key:1", (name_hash("api").0.wrapping_add(1)) >> 12, 1)));
        spent.drop_expired(10_000_000, 100, &budget);
        assert_eq!(spent.len() as u64, count - 1, "the first has expired");
        spent.drop_expired(20_000_000, 100, &budget);
        assert_eq!(spent.len() as u64, count - 101);
        spent.drop_expired(20_000_000, usize::MAX, &budget);
        assert_eq!((spent.len(), budget.taken()), (0, 0));
        assert!(spent.by_rule.is_empty() && spent.by_key.capacity() < 8, "memory is given back");
    }

    /// Where old keys are evicted for new ones, the budget is always spent.
    #[test]
    fn receipts_can_be_spent_when_the_budget_is() {
        let (mut spent, budget) = (SpentReceipts::default(), Budget::new(1 << 20));
        budget.take(1 << 20).unwrap();
        assert_eq!(fill(&mut spent, &budget, "api").0, 1_024);
        assert_eq!(budget.taken(), (1 << 20) + 1_024 * 128);
        assert!(budget.take(1).is_err(), "new keys have to wait");
    }

    #[test]
    fn an_expired_receipt_stays_expired() {
        let (mut spent, budget) = (SpentReceipts::default(), Budget::new(1 << 20));
        spend(&mut spent, &budget, &receipt("r", "k", 1, 5)).unwrap();
        spent.drop_expired(20_000_000, 1, &budget);
        assert!(spent.accepts(&receipt("r", "k", 2, 15_000_000)), "the clock leaps ahead");
        spent.drop_expired(6, 1, &budget);
        assert!(
            !spent.accepts(&receipt("r", "k", 1, 5)),
            "and is set back: its record is gone, so it is refused"
        );
    }
}
