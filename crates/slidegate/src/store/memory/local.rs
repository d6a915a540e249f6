//! The calls of the memory store as the traits have them.

use super::lock::Locks;
use super::store::MemoryStore;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::Rule;
use crate::store::{Call, CheckError, LimitUsage, LocalStore, ReturnError, Stats, Store, StoreError};
use crate::time::Clock;

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    #[inline]
    fn instant_us(&self, call: Call) -> u64 {
        call.instant_us().unwrap_or_else(|| self.clock().now_us())
    }
}

impl<C: Clock, L: Locks> LocalStore for MemoryStore<C, L> {
    #[inline]
    fn check_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        self.check_as_error(self.instant_us(call), admission)
    }

    /// At one reading of the clock.
    fn check_batch_sync<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        MemoryStore::check_batch(self, self.instant_us(call), admissions)
    }

    fn peek_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(MemoryStore::peek(self, self.instant_us(call), admission))
    }

    fn refund_sync(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        Ok(MemoryStore::refund(self, self.instant_us(call), receipt)?)
    }

    fn settle_sync(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        Ok(MemoryStore::settle(self, self.instant_us(call), receipt, actual)?)
    }

    fn credit_sync(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        Ok(MemoryStore::credit(self, self.instant_us(call), rule, key, units)?)
    }

    fn reset_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Ok(MemoryStore::reset(self, self.instant_us(call), rule, key))
    }

    fn inspect_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Ok(MemoryStore::inspect(self, self.instant_us(call), rule, key))
    }

    fn change_sync(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        MemoryStore::change(self, self.instant_us(call), rule);
        Ok(())
    }
}

/// The futures are ready when they are first polled.
impl<C: Clock, L: Locks> Store for MemoryStore<C, L> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        MemoryStore::check(self, self.instant_us(call), admission)
    }

    #[inline]
    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        Some(MemoryStore::check(self, self.instant_us(call), admission))
    }

    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        self.check_batch_sync(call, admissions)
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.peek_sync(call, admission)
    }

    async fn refund(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        self.refund_sync(call, receipt)
    }

    async fn settle(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        self.settle_sync(call, receipt, actual)
    }

    async fn credit(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        self.credit_sync(call, rule, key, units)
    }

    async fn reset(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        self.reset_sync(call, rule, key)
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        self.inspect_sync(call, rule, key)
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.change_sync(call, rule)
    }

    fn stats(&self) -> Option<Stats> {
        Some(MemoryStore::stats(self))
    }

    fn waits_by(&self) -> &dyn Clock {
        self.clock()
    }
}
