//! `Store` and `LocalStore` for the memory store.

use super::answer::Returned;
use super::lock::Locks;
use super::store::MemoryStore;
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::Applied;
use crate::rule::Rule;
use crate::store::{Call, CheckError, LimitUsage, LocalStore, Stats, Store, StoreError, Update, UpdateError};
use crate::time::Clock;

impl<C: Clock, L: Locks> LocalStore for MemoryStore<C, L> {
    #[inline]
    fn check_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        self.check_with_error(call.instant_us(), admission)
    }

    #[inline]
    fn check_charge_sync<'a>(
        &self,
        call: Call,
        charge: &Charge<'a>,
        failed: &impl Fn(StoreError) -> Result<Decision<'a>, CheckError>,
    ) -> Result<Decision<'a>, CheckError> {
        self.check_single(
            call.instant_us(),
            charge,
            self.fingerprint(charge.key.identity()),
            None,
            Returned(failed),
        )
    }

    fn check_batch_sync<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, CheckError>> {
        self.check_batch_with_error(self.now_us(call.instant_us()), admissions)
    }
}

/// The futures are ready when they are first polled.
impl<C: Clock, L: Locks> Store for MemoryStore<C, L> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.check_with_error(call.instant_us(), admission)
    }

    #[inline]
    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        Some(self.check_with_error(call.instant_us(), admission))
    }

    /// At one reading of the clock.
    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        self.check_batch(self.now_us(call.instant_us()), admissions)
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.peek(self.now_us(call.instant_us()), admission))
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        let now_us = self.now_us(call.instant_us());
        Ok(match update {
            Update::Refund(receipt) => self.refund(now_us, receipt)?,
            Update::Settle(receipt, actual) => self.settle(now_us, receipt, actual)?,
            Update::Credit(charge) => self.credit(now_us, &charge),
            Update::Reset(rule, key) => self.reset(now_us, rule, key),
        })
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Ok(self.inspect(self.now_us(call.instant_us()), rule, key))
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.change(self.now_us(call.instant_us()), rule);
        Ok(())
    }

    fn stats(&self) -> Option<Stats> {
        Some(self.stats())
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.clock()
    }
}
