//! What every store promises: the same calls, the same answers.

use super::error::{CheckError, ReturnError, StoreError};
use super::lock::Locks;
use super::memory::MemoryStore;
use super::outcome::{LimitUsage, Outcome};
use crate::charge::Admission;
use crate::decision::Decision;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::Rule;
use crate::time::Clock;

/// The time that a call is made at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Now, by the store's own clock: those who share a store share its clock, however wrong theirs are.
    Now,
    /// At that instant, in microseconds since 1970 and at most [`crate::time::TIME_MAX_US`]; for tests and
    /// replays. It may be earlier than that of a call before it: time then stands still for the states that
    /// know better.
    AtUs(u64),
}

/// Where states live: takes data, gives answers, and is asked by reference from anywhere.
///
/// Every call is one atomic step, at one reading of the clock. Nothing happens before its future is polled;
/// a future that is dropped before it is ready may have done its work or not. A failure is never a denial,
/// and says whether the charge [may have been made](StoreError::maybe_charged).
///
/// Whoever writes a store lets [`crate::testing::conformance`] judge it. Answers are made of
/// [`Verdict`](crate::decision::Verdict)s, one per ask of the admission, and receipts of
/// [`ReceiptCharge`](crate::receipt::ReceiptCharge)s.
///
/// ```
/// use slidegate::store::{MemoryStore, Store, StoreError, When};
/// use slidegate::testing::block_on;
/// use slidegate::time::ManualClock;
/// use slidegate::{Admission, Charge, Key, Rule};
///
/// async fn units_left(store: &impl Store, request: &Admission<'_>) -> Result<u64, StoreError> {
///     Ok(store.check(When::Now, request).await?.decision.remaining())
/// }
///
/// let api = Rule::builder("api").limit("5/10s".parse()?).build()?;
/// let request = Admission::new(&[Charge { rule: &api, key: Key::new("alice")?, cost: 2 }])?;
/// let store = MemoryStore::with_clock(ManualClock::at_us(1_745_000_145_000_000));
/// assert_eq!(block_on(units_left(&store, &request))?, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Send + Sync {
    /// Decides and, if everything passes, charges everything. A denial changes nothing.
    fn check<'a>(
        &self,
        when: When,
        admission: &Admission<'a>,
    ) -> impl Future<Output = Result<Outcome<'a>, StoreError>> + Send;

    /// Decides several admissions, each on its own and in their order, and answers in their order.
    ///
    /// Unless a store does better, one after the other.
    fn check_batch<'a>(
        &self,
        when: When,
        admissions: &[Admission<'a>],
    ) -> impl Future<Output = Vec<Result<Outcome<'a>, StoreError>>> + Send {
        async move {
            let mut outcomes = Vec::with_capacity(admissions.len());
            for admission in admissions {
                outcomes.push(self.check(when, admission).await);
            }
            outcomes
        }
    }

    /// Decides without charging.
    fn peek<'a>(
        &self,
        when: When,
        admission: &Admission<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Takes back a whole admission. A receipt works once; later, or when its charges have expired, nothing
    /// is applied.
    fn refund(
        &self,
        when: When,
        receipt: &Receipt<'_>,
    ) -> impl Future<Output = Result<Applied, ReturnError>> + Send;

    /// Replaces the cost of an admission by what was really spent: less is refunded, more is charged now,
    /// unconditionally. It spends the receipt.
    fn settle(
        &self,
        when: When,
        receipt: &Receipt<'_>,
        actual: u64,
    ) -> impl Future<Output = Result<Applied, ReturnError>> + Send;

    /// Gives back `units` from the oldest live charges first, at most what is used.
    fn credit(
        &self,
        when: When,
        rule: &Rule,
        key: Key<'_>,
        units: u64,
    ) -> impl Future<Output = Result<Applied, CheckError>> + Send;

    /// Forgets a key: it is as if it had never been seen, and receipts of earlier charges are void.
    fn reset(
        &self,
        when: When,
        rule: &Rule,
        key: Key<'_>,
    ) -> impl Future<Output = Result<Applied, StoreError>> + Send;

    /// What is used of every limit of a rule, without changing anything.
    fn inspect(
        &self,
        when: When,
        rule: &Rule,
        key: Key<'_>,
    ) -> impl Future<Output = Result<Vec<LimitUsage>, StoreError>> + Send;

    /// Takes over a live change of a rule: every state goes on as the new rule needs it.
    fn change(&self, when: When, rule: &Rule) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Through the plain functions of the same names: the futures are ready when they are first polled.
impl<C: Clock, L: Locks> Store for MemoryStore<C, L> {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        self.check(self.now_us(when), admission)
    }

    /// At one reading of the clock.
    async fn check_batch<'a>(
        &self,
        when: When,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Outcome<'a>, StoreError>> {
        self.check_batch(self.now_us(when), admissions)
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.peek(self.now_us(when), admission))
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        Ok(self.refund(self.now_us(when), receipt)?)
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        Ok(self.settle(self.now_us(when), receipt, actual)?)
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        Ok(self.credit(self.now_us(when), rule, key, units)?)
    }

    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Ok(self.reset(self.now_us(when), rule, key))
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Ok(self.inspect(self.now_us(when), rule, key))
    }

    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        self.change(self.now_us(when), rule);
        Ok(())
    }
}

impl<C: Clock, L: Locks> MemoryStore<C, L> {
    fn now_us(&self, when: When) -> u64 {
        match when {
            When::Now => self.clock().now_us(),
            When::AtUs(at_us) => at_us,
        }
    }
}
