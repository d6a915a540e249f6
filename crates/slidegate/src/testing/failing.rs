//! A store that fails on demand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::Rule;
use crate::store::{Call, CheckError, LimitUsage, LocalStore, ReturnError, SECRET_BYTES, Stats, Store};
use crate::time::Clock;

/// A way in which a store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The call is not executed.
    Unavailable,
    /// The call is executed, and its answer is lost.
    Ambiguous,
    /// The call is not executed.
    Refused,
    /// The call is not executed.
    Full,
}

impl Failure {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Unavailable, Self::Ambiguous, Self::Refused, Self::Full];

    /// The error that the store answers with.
    #[must_use]
    pub fn error(self) -> StoreError {
        let why = || "it fails on demand".into();
        match self {
            Self::Unavailable => StoreError::Unavailable { why: why() },
            Self::Ambiguous => StoreError::Ambiguous { why: why() },
            Self::Refused => StoreError::Refused { why: why() },
            Self::Full => StoreError::Full { budget_bytes: 0 },
        }
    }
}

/// Another store that fails on demand, and counts its calls: for tests of what a program does in an outage.
///
/// ```
/// use slidegate::rule::OnStoreError;
/// use slidegate::store::MemoryStore;
/// use slidegate::testing::{FailingStore, Failure};
/// use slidegate::{Limiter, Rule};
///
/// let limiter = Limiter::new(FailingStore::new(MemoryStore::new()));
/// let login = Rule::new("login", "5/1m")?;
/// limiter.store().fail(Failure::Unavailable);
/// assert!(limiter.check(&login, "alice").is_err());
/// assert!(limiter.with_outage_policy(OnStoreError::Allow).check(&login, "alice")?.degraded());
///
/// limiter.store().recover();
/// assert_eq!(limiter.check(&login, "alice")?.used(), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FailingStore<S> {
    store: S,
    failure: Mutex<Option<Failure>>,
    calls: AtomicU64,
}

impl<S: Store> FailingStore<S> {
    /// A store that works until it is told to fail.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, failure: Mutex::new(None), calls: AtomicU64::new(0) }
    }

    /// Every call fails from now on.
    pub fn fail(&self, failure: Failure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// Every call is answered again.
    pub fn recover(&self) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How many calls it was asked to execute; a batch is one.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The store that answers while it does not fail.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// Counts a call, and says how it fails.
    fn asked(&self) -> Option<Failure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass<T, E: From<StoreError>>(
        &self,
        executed: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.asked() {
            None => executed.await,
            Some(Failure::Ambiguous) => {
                let _lost = executed.await;
                Err(Failure::Ambiguous.error().into())
            }
            Some(failure) => Err(failure.error().into()),
        }
    }

    fn pass_sync<T, E: From<StoreError>>(&self, execute: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        match self.asked() {
            None => execute(),
            Some(Failure::Ambiguous) => {
                let _lost = execute();
                Err(Failure::Ambiguous.error().into())
            }
            Some(failure) => Err(failure.error().into()),
        }
    }
}

/// A batch without its answers.
fn all_fail<'a>(admissions: &[Admission<'a>], failure: Failure) -> Vec<Result<Decision<'a>, StoreError>> {
    admissions.iter().map(|_| Err(failure.error())).collect()
}

impl<S: Store> Store for FailingStore<S> {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.pass(self.store.check(call, admission)).await
    }

    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        let mut waits = false;
        let answer = self.pass_sync(|| {
            let decided = self.store.try_check(call, admission);
            waits = decided.is_none();
            // Never shown: a store that waits has no answer here.
            decided.unwrap_or_else(|| Err(Failure::Unavailable.error()))
        });
        if waits {
            // `check` counts the call when it executes it.
            self.calls.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(answer)
    }

    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        match self.asked() {
            None => self.store.check_batch(call, admissions).await,
            Some(Failure::Ambiguous) => {
                let _lost = self.store.check_batch(call, admissions).await;
                all_fail(admissions, Failure::Ambiguous)
            }
            Some(failure) => all_fail(admissions, failure),
        }
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.pass(self.store.peek(call, admission)).await
    }

    async fn refund(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        self.pass(self.store.refund(call, receipt)).await
    }

    async fn settle(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        self.pass(self.store.settle(call, receipt, actual)).await
    }

    async fn credit(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        self.pass(self.store.credit(call, rule, key, units)).await
    }

    async fn reset(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        self.pass(self.store.reset(call, rule, key)).await
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        self.pass(self.store.inspect(call, rule, key)).await
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.pass(self.store.change(call, rule)).await
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        self.pass(self.store.secret()).await
    }

    fn stats(&self) -> Option<Stats> {
        self.store.stats()
    }

    fn waits_by(&self) -> &dyn Clock {
        self.store.waits_by()
    }
}

impl<S: LocalStore> LocalStore for FailingStore<S> {
    fn check_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        self.pass_sync(|| self.store.check_sync(call, admission))
    }

    fn check_batch_sync<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        match self.asked() {
            None => self.store.check_batch_sync(call, admissions),
            Some(Failure::Ambiguous) => {
                let _lost = self.store.check_batch_sync(call, admissions);
                all_fail(admissions, Failure::Ambiguous)
            }
            Some(failure) => all_fail(admissions, failure),
        }
    }

    fn peek_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.pass_sync(|| self.store.peek_sync(call, admission))
    }

    fn refund_sync(&self, call: Call, receipt: &Receipt) -> Result<Applied, ReturnError> {
        self.pass_sync(|| self.store.refund_sync(call, receipt))
    }

    fn settle_sync(&self, call: Call, receipt: &Receipt, actual: u64) -> Result<Applied, ReturnError> {
        self.pass_sync(|| self.store.settle_sync(call, receipt, actual))
    }

    fn credit_sync(&self, call: Call, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        self.pass_sync(|| self.store.credit_sync(call, rule, key, units))
    }

    fn reset_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        self.pass_sync(|| self.store.reset_sync(call, rule, key))
    }

    fn inspect_sync(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        self.pass_sync(|| self.store.inspect_sync(call, rule, key))
    }

    fn change_sync(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.pass_sync(|| self.store.change_sync(call, rule))
    }
}
