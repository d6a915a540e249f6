//! The verbs as blocking functions, for local stores.

use std::borrow::Borrow;
use std::time::Duration;

use super::{Core, Limiter};
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::guard::fewer_answers;
use crate::key::IntoKey;
use crate::receipt::{Applied, Receipt};
use crate::rule::Rule;
use crate::store::{CheckError, LimitUsage, LocalStore, StoreError, UpdateError};
use crate::time::block_on;

impl<S: LocalStore, H: Borrow<Core<S>>> Limiter<S, H> {
    /// Decides on one unit of a rule for a key and, if it passes, charges it.
    ///
    /// An invalid key is a [`CheckError`] with the reason.
    #[inline]
    pub fn check<'a>(&self, rule: &'a Rule, key: impl IntoKey<'a>) -> Result<Decision<'a>, CheckError> {
        self.check_n(rule, key, 1)
    }

    /// [`Limiter::check`] for `cost` units. A cost above the rule's limit can never pass: an error, not a denial.
    #[inline]
    pub fn check_n<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
        cost: u64,
    ) -> Result<Decision<'a>, CheckError> {
        let charge = Charge::new(rule, key.into_key()?, cost);
        if rule.can_admit(cost) {
            self.decide_charge(&charge)
        } else {
            self.decide(&Admission::of_one(charge)?)
        }
    }

    /// Decides on one charge of a cost that can pass. One result, written where the caller wants it: copying a decision
    /// takes as long as making it.
    #[inline]
    fn decide_charge<'a>(&self, charge: &Charge<'a>) -> Result<Decision<'a>, CheckError> {
        self.store().check_charge_sync(self.call(), charge, &|error| {
            let admission = Admission::of_checked(*charge);
            self.core().guard.without_store(self.guarded_call(), &admission, error, true)
        })
    }

    /// Decides and, if every charge passes, makes all of them; otherwise none.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    ///
    /// let limiter = Limiter::in_memory();
    /// let (quota, search) = (Rule::new("quota", "9500/24h")?, Rule::new("search", "500/10m")?);
    /// let decision = limiter.check_all(&[quota.charge("key1", 100)?, search.charge("key1", 100)?])?;
    /// assert_eq!((decision.rule(), decision.remaining()), ("search", Some(400)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_all<'a>(&self, charges: &[Charge<'a>]) -> Result<Decision<'a>, CheckError> {
        self.decide(&Admission::new(charges)?)
    }

    /// Decides on an [`Admission`].
    #[inline]
    pub fn decide<'a>(&self, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        if let Some(decision) = Self::decision_without_store(admission) {
            return Ok(decision);
        }
        let mut decided = self.store().check_sync(self.call(), admission);
        if decided.is_err() {
            self.core().guard.replace_failure(self.guarded_call(), admission, &mut decided);
        }
        decided
    }

    /// Decides several admissions, each on its own and in their order, and answers in their order.
    ///
    /// In memory it is faster than as many checks: the clock is read once for all of them, and on x86-64 the states of 16
    /// keys at a time are prefetched, so that their cache misses overlap. Other stores read the clock once per admission.
    ///
    /// ```
    /// use slidegate::{Admission, Limiter, Rule};
    ///
    /// let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/1m")?);
    /// let mut batch = Vec::new();
    /// for name in ["alice", "bob", "alice"] {
    ///     batch.push(Admission::new(&[api.charge(name, 1)?])?);
    /// }
    /// let mut allowed = Vec::new();
    /// for decision in limiter.check_batch(&batch) {
    ///     allowed.push(decision?.allowed());
    /// }
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_batch<'a>(&self, admissions: &[Admission<'a>]) -> Vec<Result<Decision<'a>, CheckError>> {
        if admissions.iter().any(|admission| admission.asks().is_empty()) {
            return block_on(self.blocking().check_batch_async(admissions));
        }
        let mut decided = self.store().check_batch_sync(self.call(), admissions);
        decided.resize_with(admissions.len(), || Err(fewer_answers().into()));
        for (admission, decided) in admissions.iter().zip(&mut decided) {
            if decided.is_err() {
                self.core().guard.replace_failure(self.guarded_call(), admission, decided);
            }
        }
        decided
    }

    /// Decides on one unit without charging it.
    pub fn peek<'a>(&self, rule: &'a Rule, key: impl IntoKey<'a>) -> Result<Decision<'a>, CheckError> {
        block_on(self.blocking().peek_async(rule, key))
    }

    /// Decides on charges without making any.
    pub fn peek_all<'a>(&self, charges: &[Charge<'a>]) -> Result<Decision<'a>, CheckError> {
        block_on(self.blocking().peek_all_async(charges))
    }

    /// Decides on an admission without charging it.
    pub fn peek_admission<'a>(&self, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        block_on(self.blocking().peek_admission_async(admission))
    }

    /// Takes back a whole admission. A receipt works once; a spent or expired one gives nothing back.
    pub fn refund(&self, receipt: &Receipt) -> Result<Applied, UpdateError> {
        block_on(self.blocking().refund_async(receipt))
    }

    /// Replaces the cost of an admission by the actual cost: less is refunded, more is charged now, unconditionally,
    /// because the work is done. It spends the receipt.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    ///
    /// let (limiter, tokens) = (Limiter::in_memory(), Rule::new("tokens", "1000/1m")?);
    /// let estimated = limiter.check_n(&tokens, "alice", 500)?;
    /// let receipt = estimated.receipt().expect("an admission has a receipt");
    /// assert_eq!(limiter.settle(&receipt, 120)?.units, 380);
    /// assert_eq!(limiter.peek(&tokens, "alice")?.used(), Some(120));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self, receipt: &Receipt, actual: u64) -> Result<Applied, UpdateError> {
        block_on(self.blocking().settle_async(receipt, actual))
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub fn credit<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
        units: u64,
    ) -> Result<Applied, UpdateError> {
        block_on(self.blocking().credit_async(rule, key, units))
    }

    /// Drops the state of a key. Receipts of its earlier charges are void.
    pub fn reset<'a>(&self, rule: &'a Rule, key: impl IntoKey<'a>) -> Result<Applied, UpdateError> {
        block_on(self.blocking().reset_async(rule, key))
    }

    /// What is used of every limit of a rule, without changing anything.
    pub fn inspect<'a>(&self, rule: &'a Rule, key: impl IntoKey<'a>) -> Result<Vec<LimitUsage>, CheckError> {
        block_on(self.blocking().inspect_async(rule, key))
    }

    /// Applies a live change of a rule. Used units are kept; a new window's state starts with them.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    ///
    /// let limiter = Limiter::in_memory();
    /// limiter.check(&Rule::new("api", "5/1m")?, "alice")?;
    /// let wider = Rule::new("api", "500/1h")?;
    /// limiter.change(&wider)?;
    /// assert_eq!(limiter.peek(&wider, "alice")?.used(), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change(&self, rule: &Rule) -> Result<(), StoreError> {
        block_on(self.blocking().change_async(rule))
    }

    /// Waits up to `max_wait` until one unit of a rule is admitted for a key; blocks the thread.
    pub fn acquire<'a>(
        &self,
        rule: &'a Rule,
        key: impl IntoKey<'a>,
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        self.acquire_all(&[rule.charge(key, 1)?], max_wait)
    }

    /// Waits up to `max_wait` until all charges are admitted together; blocks the thread.
    ///
    /// Acquisitions that wait in this limiter are served first come, first served, per key; one that arrives
    /// while others wait for one of its keys queues behind them. A plain `check` does not queue.
    ///
    /// It returns a denial, without a charge, as soon as the announced wait exceeds `max_wait`, and at the latest when
    /// `max_wait` has passed. The `retry_after` of a denial behind other waiters is when those try next, even if there
    /// are units left.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    /// use std::time::Duration;
    ///
    /// let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/10ms")?);
    /// for _ in 0..3 {
    ///     // The second waits until the first is 10 ms old.
    ///     assert!(limiter.acquire(&api, "alice", Duration::from_secs(10))?.allowed());
    /// }
    ///
    /// let quota = Rule::new("quota", "1/24h")?;
    /// limiter.check(&quota, "alice")?;
    /// // The announced wait is longer than ten seconds, so this returns at once.
    /// let refused = limiter.acquire(&quota, "alice", Duration::from_secs(10))?;
    /// assert!(!refused.allowed() && refused.retry_after() > Some(Duration::from_secs(10)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_all<'a>(
        &self,
        charges: &[Charge<'a>],
        max_wait: Duration,
    ) -> Result<Decision<'a>, CheckError> {
        let clock = self.store().wait_clock();
        // Only `block_on` polls this sleep, and its waker unparks the thread.
        let sleep_until = |until_us| async move { clock.park_until_us(until_us) };
        block_on(self.blocking().acquire_with(charges, max_wait, sleep_until))
    }

    /// A view whose calls may block this thread.
    fn blocking(&self) -> Limiter<S, &Core<S>> {
        let view = self.view();
        Limiter { call: view.call.blocking(), ..view }
    }
}
