//! The verbs as async functions, for every store.

use std::borrow::{Borrow, Cow};

use super::{Core, Limiter};
use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::Decision;
use crate::guard::{GuardedCall, Known};
use crate::key::IntoKey;
use crate::receipt::{Applied, Receipt};
use crate::rule::{OnStoreError, Rule};
use crate::store::{CheckError, LimitUsage, SECRET_BYTES, Store, StoreError, Update, UpdateError};

impl<S: Store, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Decides on one unit of a rule for a key and, if it passes, charges it.
    ///
    /// An invalid key is a [`CheckError`] with the reason.
    pub async fn check_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
    ) -> Result<Decision<'a>, CheckError> {
        self.check_n_async(rule, key, 1).await
    }

    /// [`Limiter::check_async`] for `cost` units. A cost above the rule's limit can never pass: an error, not a denial.
    pub async fn check_n_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
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
        self.check_shards(admission)?;
        let (guard, call) = (&self.core().guard, self.guarded_call());
        let missed = match guard.known(call, admission) {
            Known::Denied(denied) => return Ok(denied),
            Known::Unknown(missed) => missed,
        };
        let decided = guard.ask(call, self.store().check(self.call(), admission)).await;
        guard.answer(call, admission, missed, decided, true)
    }

    /// Decides synchronously if the store never waits, as in memory, or need not be asked: it saves callers a boxed
    /// future. `None`, without any effect, in all other cases.
    #[inline]
    pub fn try_decide<'a>(&self, admission: &Admission<'a>) -> Option<Result<Decision<'a>, CheckError>> {
        if let Some(decision) = Self::decision_without_store(admission) {
            return Some(Ok(decision));
        }
        if let Err(error) = self.check_shards(admission) {
            return Some(Err(error.into()));
        }
        let (guard, call) = (&self.core().guard, self.guarded_call());
        if let Some(answer) = guard.answer_without_store(call, admission) {
            return Some(answer);
        }
        if guard.has_breaker() {
            return None;
        }
        let decided = self.store().try_check(self.call(), admission)?;
        Some(guard.answer(call, admission, None, decided, true))
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
        let (guard, call) = (&self.core().guard, self.guarded_call());
        let known: Vec<_> = admissions
            .iter()
            .map(|admission| match Self::decision_without_store(admission) {
                Some(decision) => Ok(Known::Denied(decision)),
                None => self.check_shards(admission).map(|()| guard.known(call, admission)),
            })
            .collect();
        let is_unknown = |known: &Result<Known<'_>, ChargeError>| matches!(known, Ok(Known::Unknown(_)));
        let asked: Cow<'_, [Admission<'a>]> = if known.iter().all(is_unknown) {
            Cow::Borrowed(admissions)
        } else {
            let unknown = admissions.iter().zip(&known).filter(|(_, known)| is_unknown(known));
            unknown.map(|(admission, _)| admission.clone()).collect()
        };
        let mut decided = Vec::new();
        if !asked.is_empty() {
            let asking = self.store().check_batch(self.call(), &asked);
            decided = guard.ask_batch(call, asked.len(), asking).await;
        }
        let mut decided = decided.into_iter();
        let answers =
            admissions.iter().zip(known).enumerate().map(|(index, (admission, known))| match known {
                Err(never) => Err(never.into()),
                Ok(Known::Denied(decision)) => Ok(decision),
                Ok(Known::Unknown(missed)) => {
                    let call = GuardedCall { policy: policy(index), ..call };
                    let decided = decided.next().expect("an answer for each admission that was asked");
                    guard.answer(call, admission, missed, decided, true)
                }
            });
        answers.collect()
    }

    /// Decides on one unit without charging it.
    pub async fn peek_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
    ) -> Result<Decision<'a>, CheckError> {
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
        self.check_shards(admission)?;
        let (guard, call) = (&self.core().guard, self.guarded_call());
        let decided = guard.ask(call, self.store().peek(self.call(), admission)).await;
        guard.answer(call, admission, None, decided, false)
    }

    /// Refuses a cost that never passes because the store splits the key.
    #[inline]
    fn check_shards(&self, admission: &Admission<'_>) -> Result<(), ChargeError> {
        if admission.has_shards() && self.store().splits_keys() { admission.check_shards() } else { Ok(()) }
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
    pub async fn credit_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
        units: u64,
    ) -> Result<Applied, UpdateError> {
        let charge = rule.charge(key, units)?;
        if units == 0 {
            return Err(UpdateError::ZeroCredit { rule: rule.name().to_owned() });
        }
        self.update(Update::Credit(charge)).await
    }

    /// Drops the state of a key. Receipts of its earlier charges are void.
    pub async fn reset_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
    ) -> Result<Applied, UpdateError> {
        self.update(Update::Reset(rule, key.into_key()?)).await
    }

    async fn update(&self, update: Update<'_>) -> Result<Applied, UpdateError> {
        let _updated = OnDrop(|| self.updated(update));
        let asking = self.store().update(self.call(), update);
        self.core().guard.ask(self.guarded_call(), asking).await
    }

    /// What is used of every limit of a rule, without changing anything.
    pub async fn inspect_async<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
    ) -> Result<Vec<LimitUsage>, CheckError> {
        let asking = self.store().inspect(self.call(), rule, key.into_key()?);
        Ok(self.core().guard.ask(self.guarded_call(), asking).await?)
    }

    /// The secret that all processes with this store share: see [`Store::secret`].
    pub async fn secret_async(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        self.core().guard.ask(self.guarded_call(), self.store().secret()).await
    }

    /// Gives the store a secret that this process has signed with, and returns all that are valid: see
    /// [`Store::share_secret`].
    pub async fn share_secret_async(
        &self,
        own: &[u8; SECRET_BYTES],
    ) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        self.core().guard.ask(self.guarded_call(), self.store().share_secret(own)).await
    }

    /// Applies a live change of a rule. Used units are kept; a new window's state starts with them.
    pub async fn change_async(&self, rule: &Rule) -> Result<(), StoreError> {
        let _changed = OnDrop(|| {
            self.core().guard.rule_changed();
            self.core().waiters.wake_rule(rule);
        });
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
