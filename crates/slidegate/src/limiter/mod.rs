//! The limiter: a store, and those who wait.

mod acquire;
mod waiters;

use crate::charge::{Admission, Charge, ChargeError};
use crate::decision::Decision;
use crate::guard::ByPolicy;
use crate::key::Key;
use crate::receipt::{Applied, Receipt, ReceiptError};
use crate::rule::Rule;
use crate::store::{BudgetError, LimitUsage, MemoryStore, Outcome, Stats};
use crate::time::{Clock, SystemClock};
use waiters::Waiters;

pub use crate::store::CheckError;
pub use acquire::AcquireError;
pub use waiters::WAITERS_MAX;

/// Decides, counts and remembers, in this process, for all its threads.
///
/// Every call reads the clock once. Share it behind an `Arc`, or in a `static`.
///
/// ```
/// use slidegate::{Charge, Key, Limiter, Rule};
///
/// let login = Rule::builder("login").limit("5/1m".parse()?).build()?;
/// let limiter = Limiter::in_memory();
///
/// let attempt = [Charge { rule: &login, key: Key::new("alice")?, cost: 1 }];
/// for _ in 0..5 {
///     assert!(limiter.check(&attempt)?.decision.allowed());
/// }
/// let refused = limiter.check(&attempt)?.decision;
/// assert!(!refused.allowed());
/// assert!(refused.retry_after() <= login.limits()[0].rate().window());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Tests bring a clock of their own:
///
/// ```
/// use slidegate::time::ManualClock;
/// use slidegate::{Charge, Key, Limiter, Rule};
/// use std::time::Duration;
///
/// let api = Rule::builder("api").limit("1/10s".parse()?).build()?;
/// let limiter = Limiter::with_clock(ManualClock::at_us(1_745_000_145_000_000));
/// let request = [Charge { rule: &api, key: Key::new("alice")?, cost: 1 }];
///
/// assert!(limiter.check(&request)?.decision.allowed());
/// let refused = limiter.check(&request)?.decision;
/// limiter.clock().advance(refused.retry_after() - Duration::from_micros(1));
/// assert!(!limiter.check(&request)?.decision.allowed());
/// limiter.clock().advance(Duration::from_micros(1));
/// assert!(limiter.check(&request)?.decision.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Limiter<C = SystemClock> {
    store: MemoryStore<C>,
    waiters: Waiters,
}

impl Limiter {
    /// A limiter whose states live in this process, on the system's clock.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// The same, taking at most so many bytes, instead of [`crate::store::BUDGET_BYTES_DEFAULT`].
    ///
    /// A new key that does not fit is [`crate::store::StoreError::Full`], which its rule's `on_store_error` answers, or takes
    /// the place of an old one where its rule says so.
    pub fn with_budget(bytes: u64) -> Result<Self, BudgetError> {
        Ok(Self::new(MemoryStore::with_budget(bytes)?))
    }
}

impl<C: Clock> Limiter<C> {
    /// A limiter whose states live in this process, on that clock.
    #[must_use]
    pub fn with_clock(clock: C) -> Self {
        Self::new(MemoryStore::with_clock(clock))
    }

    /// A limiter on that store, and on its clock.
    #[must_use]
    pub fn new(store: MemoryStore<C>) -> Self {
        Self { store, waiters: Waiters::default() }
    }

    /// What it holds, and what became of keys.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// The clock it goes by.
    #[must_use]
    pub fn clock(&self) -> &C {
        self.store.clock()
    }

    /// Decides and, if every charge passes, makes all of them; otherwise none.
    pub fn check<'a>(&self, charges: &[Charge<'a>]) -> Result<Outcome<'a>, CheckError> {
        let now_us = self.clock().now_us();
        match charges {
            [charge] if charge.can_pass() => self.store.check_alone::<ByPolicy>(now_us, charge),
            charges => self.store.check_or::<ByPolicy>(now_us, &Admission::new(charges)?),
        }
    }

    /// Decides several admissions, each on its own, at one reading of the clock, and answers in their order.
    ///
    /// Faster than as many checks where there are many keys: all are looked up before the first is decided, so
    /// that the processor waits for their memory at once and not for one after the other.
    ///
    /// ```
    /// use slidegate::{Admission, Charge, Key, Limiter, Rule};
    ///
    /// let api = Rule::builder("api").limit("1/1m".parse()?).build()?;
    /// let limiter = Limiter::in_memory();
    /// let mut batch = Vec::new();
    /// for name in ["alice", "bob", "alice"] {
    ///     batch.push(Admission::new(&[Charge { rule: &api, key: Key::new(name)?, cost: 1 }])?);
    /// }
    /// let mut allowed = Vec::new();
    /// for outcome in limiter.check_batch(&batch) {
    ///     allowed.push(outcome?.decision.allowed());
    /// }
    /// assert_eq!(allowed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_batch<'a>(&self, admissions: &[Admission<'a>]) -> Vec<Result<Outcome<'a>, CheckError>> {
        self.store.check_batch_or::<ByPolicy>(self.clock().now_us(), admissions)
    }

    /// Decides without charging.
    pub fn peek<'a>(&self, charges: &[Charge<'a>]) -> Result<Decision<'a>, ChargeError> {
        Ok(self.store.peek(self.clock().now_us(), &Admission::new(charges)?))
    }

    /// Takes back a whole admission: [`MemoryStore::refund`].
    pub fn refund(&self, receipt: &Receipt<'_>) -> Result<Applied, ReceiptError> {
        let applied = self.store.refund(self.clock().now_us(), receipt);
        self.wake_waiters(receipt);
        applied
    }

    /// Replaces the cost of an admission by what was really spent: [`MemoryStore::settle`].
    pub fn settle(&self, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReceiptError> {
        let applied = self.store.settle(self.clock().now_us(), receipt, actual);
        self.wake_waiters(receipt);
        applied
    }

    /// Gives back `units` from the oldest live charges first, at most what is used.
    pub fn credit(&self, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, ChargeError> {
        let applied = self.store.credit(self.clock().now_us(), rule, key, units);
        self.waiters.wake([(rule.name(), key.as_str())].into_iter());
        applied
    }

    /// Forgets a key: it is as if it had never been seen, and receipts of earlier charges are void.
    pub fn reset(&self, rule: &Rule, key: Key<'_>) -> Applied {
        let applied = self.store.reset(self.clock().now_us(), rule, key);
        self.waiters.wake([(rule.name(), key.as_str())].into_iter());
        applied
    }

    /// What is used of every limit of a rule, without changing anything.
    #[must_use]
    pub fn inspect(&self, rule: &Rule, key: Key<'_>) -> Vec<LimitUsage> {
        self.store.inspect(self.clock().now_us(), rule, key)
    }

    /// Takes over a live change of a rule. What is used is kept, or begins the states of a new window.
    pub fn change(&self, rule: &Rule) {
        self.store.change(self.clock().now_us(), rule);
        self.waiters.wake_rule(rule);
    }

    /// Forgets every key of which nothing counts any more; says how many: [`MemoryStore::sweep`].
    pub fn sweep(&self) -> usize {
        self.store.sweep(self.clock().now_us())
    }

    fn wake_waiters(&self, receipt: &Receipt<'_>) {
        self.waiters.wake(receipt.charges().iter().map(|charge| (charge.rule(), charge.key())));
    }
}
