//! Refunds and settlements.

use super::lock::{Lock, Locks};
use super::single::note;
use super::spent_receipts::{RecordOwner, SpentReceipts};
use super::store::{MemoryStore, RECORDS_PER_SWEEP};
use crate::charge::Charge;
use crate::receipt::{Applied, ChargePlace, Position, Receipt, ReceiptCharge, ReceiptError};
use crate::time::Clock;

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    /// Takes back a whole admission. A receipt works once; a spent or expired one gives nothing back.
    ///
    /// ```
    /// use slidegate::store::MemoryStore;
    /// use slidegate::{Admission, Rule};
    ///
    /// let api = Rule::new("api", "10/1m")?;
    /// let request = Admission::new(&[api.charge("alice", 3)?])?;
    /// let store = MemoryStore::new();
    ///
    /// let receipt = store.check(1_000, &request)?.receipt().expect("an admission has a receipt");
    /// assert_eq!(store.refund(2_000, &receipt)?.units, 3);
    /// assert!(!store.refund(2_000, &receipt)?.applied);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund(&self, now_us: u64, receipt: &Receipt) -> Result<Applied, ReceiptError> {
        self.spend(now_us, receipt, |store| {
            let given = receipt.charges().iter().map(|charge| store.give_back(now_us, charge, charge.cost()));
            let units = given.sum();
            Ok(Applied { applied: units > 0, units })
        })
    }

    /// Replaces the cost of an admission by the actual cost: less is refunded, more is charged
    /// now, unconditionally, because the work is done. An expired receipt changes nothing: an excess is
    /// then a new request.
    ///
    /// ```
    /// use slidegate::store::MemoryStore;
    /// use slidegate::{Admission, Rule};
    ///
    /// let tokens = Rule::new("tokens", "1000/1m")?;
    /// let guess = Admission::new(&[tokens.charge("alice", 500)?])?;
    /// let store = MemoryStore::new();
    ///
    /// let receipt = store.check(1_000, &guess)?.receipt().expect("an admission has a receipt");
    /// assert_eq!(store.settle(2_000, &receipt, 120)?.units, 380);
    /// assert_eq!(store.peek(2_000, &guess).used(), Some(120));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self, now_us: u64, receipt: &Receipt, actual: u64) -> Result<Applied, ReceiptError> {
        self.spend(now_us, receipt, |store| {
            let cost = receipt.cost_to_settle(actual)?;
            let moved = receipt.charges().iter().map(|charge| match actual.checked_sub(cost) {
                Some(0) => 0,
                Some(excess) => store.charge_excess(now_us, charge, excess),
                None => store.give_back(now_us, charge, cost - actual),
            });
            let units = moved.sum();
            Ok(Applied { applied: units > 0 || actual == cost, units })
        })
    }

    /// Charges what another store has admitted, whatever is used, unless the budget is spent.
    pub(crate) fn charge_unchecked(&self, now_us: u64, charge: &Charge<'_>) {
        if self.budget.taken() >= self.budget.bytes() {
            return;
        }
        note(&self.noted_us, now_us);
        let place = |&limit| ChargePlace { limit, order: 0, position: Position::At(0) };
        let (rule, key) = (charge.rule, charge.key);
        let charge = ReceiptCharge::new(rule.name(), key, charge.cost, rule.limits().iter().map(place));
        let (fingerprint, mut shard) = self.shard(key.identity());
        shard.charge_excess(self.room(), fingerprint, now_us, &charge, charge.cost());
        let sweep_is_due = shard.sweep_is_due();
        drop(shard);
        if sweep_is_due {
            self.sweep_some();
        }
    }

    /// Runs `act` if this store issued the receipt and it is neither spent nor expired; marks it spent on success.
    fn spend(
        &self,
        now_us: u64,
        receipt: &Receipt,
        act: impl FnOnce(&Self) -> Result<Applied, ReceiptError>,
    ) -> Result<Applied, ReceiptError> {
        if receipt.store() != self.id {
            return Err(ReceiptError::Foreign);
        }
        // Locked until the receipt is recorded, so that it works once if presented twice at once. Shards are
        // locked after this lock and never before it.
        let mut spent = self.spent_receipts.lock();
        spent.drop_expired(now_us.max(self.noted_us()), RECORDS_PER_SWEEP, &self.budget);
        if !spent.accepts(receipt) {
            return Ok(Applied::default());
        }
        let owner = RecordOwner::of(receipt, |key| self.fingerprint(key));
        spent.take_room(owner, &self.budget)?;
        let applied = act(self).inspect_err(|_| SpentReceipts::give_room(&self.budget))?;
        spent.spend(receipt, owner);
        Ok(applied)
    }

    /// Takes back up to `units` of a charge.
    fn give_back(&self, now_us: u64, charge: &ReceiptCharge, units: u64) -> u64 {
        let (fingerprint, mut shard) = self.shard(charge.key().identity());
        shard.refund(self.room(), fingerprint, now_us, charge, units)
    }

    fn charge_excess(&self, now_us: u64, charge: &ReceiptCharge, units: u64) -> u64 {
        let (fingerprint, mut shard) = self.shard(charge.key().identity());
        shard.charge_excess(self.room(), fingerprint, now_us, charge, units);
        units
    }
}
