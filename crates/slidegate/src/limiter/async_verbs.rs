//! The verbs as async functions, for every store.

use std::borrow::Borrow;

use super::{Core, Limiter, needing_store};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::{OnStoreError, Rule};
use crate::store::{CheckError, LimitUsage, Store, StoreError, Update, UpdateError};

impl<S: Store, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Decides on one unit of a rule for a key and, if it passes, charges it.
    ///
    /// An invalid key is a [`CheckError`] with the reason.
    pub async fn check_async<'a>(&self, rule: &'a Rule, key: &'a str) -> Result<Decision<'a>, CheckError> {
        self.check_n_async(rule, key, 1).await
    }

    /// [`Limiter::check_async`] for `cost` units. A cost above the rule's limit can never pass: an error, not a denial.
    pub async fn check_n_async<'a>(
        &self,
        rule: &'a Rule,
        key: &'a str,
        cost: u64,
    ) -> Result<Decision<'a>, CheckError> {
        self.decide_async(&Admission::of_one(rule.charge(key, cost)?)?).await
    }

    /// Decides and, if every charge passes, makes all of them; otherwise none.
    pub async fn check_all_async<'a>(&self, charges: &[Charge<'a>]) -> Result<Decision<'a>, CheckError> {
        self.decide_async(&Admission::new(charges)?).await
    }

    /// Decides on an [`Admission`].
    pub async fn decide_async<'a>(&self, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        if let Some(decision) = Self::decision_without_store(admission) {
            return Ok(decision);
        }
        self.or_outage_policy(admission, self.store().check(self.call(), admission).await)
    }

    /// Decides synchronously if the store never waits, as in memory: it saves callers a boxed future.
    /// `None`, without any effect, for all other stores.
    #[inline]
    pub fn try_decide<'a>(&self, admission: &Admission<'a>) -> Option<Result<Decision<'a>, CheckError>> {
        if let Some(decision) = Self::decision_without_store(admission) {
            return Some(Ok(decision));
        }
        let decided = self.store().try_check(self.call(), admission)?;
        Some(self.or_outage_policy(admission, decided))
    }

    /// Decides several admissions, each on its own and in their order, and answers in their order.
    pub async fn check_batch_async<'a>(
        &self,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, CheckError>> {
        self.check_batch_each_async(admissions, |_| self.policy).await
    }

    /// [`Limiter::check_batch_async`] with an outage policy per admission, by its index; `None` uses the rules'
    /// policies.
    pub async fn check_batch_each_async<'a>(
        &self,
        admissions: &[Admission<'a>],
        policy: impl Fn(usize) -> Option<OnStoreError>,
    ) -> Vec<Result<Decision<'a>, CheckError>> {
        let asked = needing_store(admissions);
        let decided =
            if asked.is_empty() { Vec::new() } else { self.store().check_batch(self.call(), &asked).await };
        self.or_outage_policy_batch(admissions, decided, policy)
    }

    /// Decides on one unit without charging it.
    pub async fn peek_async<'a>(&self, rule: &'a Rule, key: &'a str) -> Result<Decision<'a>, CheckError> {
        self.peek_all_async(&[rule.charge(key, 1)?]).await
    }

    /// Decides on charges without making any.
    pub async fn peek_all_async<'a>(&self, charges: &[Charge<'a>]) -> Result<Decision<'a>, CheckError> {
        self.peek_admission_async(&Admission::new(charges)?).await
    }

    /// Decides on an admission without charging it.
    pub async fn peek_admission_async<'a>(
        &self,
        admission: &Admission<'a>,
    ) -> Result<Decision<'a>, CheckError> {
        if let Some(decision) = Self::decision_without_store(admission) {
            return Ok(decision);
        }
        self.or_outage_policy(admission, self.store().peek(self.call(), admission).await)
    }

    /// Takes back a whole admission. A receipt works once; a spent or expired one gives nothing back.
    pub async fn refund_async(&self, receipt: &Receipt) -> Result<Applied, UpdateError> {
        self.update(Update::Refund(receipt)).await
    }

    /// Replaces the cost of an admission by the actual cost: less is refunded, more is charged now, unconditionally,
    /// because the work is done. It spends the receipt.
    pub async fn settle_async(&self, receipt: &Receipt, actual: u64) -> Result<Applied, UpdateError> {
        self.update(Update::Settle(receipt, actual)).await
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub async fn credit_async(&self, rule: &Rule, key: &str, units: u64) -> Result<Applied, UpdateError> {
        let charge = rule.charge(key, units)?;
        if units == 0 {
            return Err(UpdateError::ZeroCredit { rule: rule.name().to_owned() });
        }
        self.update(Update::Credit(charge)).await
    }

    /// Drops the state of a key. Receipts of its earlier charges are void.
    pub async fn reset_async(&self, rule: &Rule, key: &str) -> Result<Applied, UpdateError> {
        self.update(Update::Reset(rule, Key::new(key)?)).await
    }

    async fn update(&self, update: Update<'_>) -> Result<Applied, UpdateError> {
        let _wake = OnDrop(|| self.wake(update));
        self.store().update(self.call(), update).await
    }

    /// What is used of every limit of a rule, without changing anything.
    pub async fn inspect_async(&self, rule: &Rule, key: &str) -> Result<Vec<LimitUsage>, CheckError> {
        Ok(self.store().inspect(self.call(), rule, Key::new(key)?).await?)
    }

    /// Applies a live change of a rule. Used units are kept; a new window's state starts with them.
    pub async fn change_async(&self, rule: &Rule) -> Result<(), StoreError> {
        let _wake = OnDrop(|| self.core().waiters.wake_rule(rule));
        self.store().change(self.call(), rule).await
    }
}

/// Calls a function when it is dropped: also when a future is cancelled after the store has executed the call.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}
