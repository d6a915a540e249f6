//! A store that fails on demand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::{RefusalCause, StoreError};
use crate::key::Key;
use crate::receipt::Applied;
use crate::rule::Rule;
use crate::store::{Call, LimitUsage, LocalStore, SECRET_BYTES, Stats, Store, Update, UpdateError};
use crate::time::Clock;

/// The kinds of store failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// The call is not executed.
    Unavailable,
    /// The call is executed, and its answer is lost.
    Ambiguous,
    /// The call is not executed.
    Refused,
    /// The call is not executed.
    Full,
}

impl StoreFailure {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Unavailable, Self::Ambiguous, Self::Refused, Self::Full];

    /// The error that the store answers with.
    #[must_use]
    pub fn error(self) -> StoreError {
        let why = || "it fails on demand".into();
        match self {
            Self::Unavailable => StoreError::Unavailable { why: why() },
            Self::Ambiguous => StoreError::Ambiguous { why: why() },
            Self::Refused => StoreError::Refused { cause: RefusalCause::Other, why: why() },
            Self::Full => StoreError::Full { budget_bytes: 0 },
        }
    }
}

/// Wraps a store, fails on demand, and counts the calls: for tests of outages.
///
/// ```
/// use slidegate::rule::OnStoreError;
/// use slidegate::store::MemoryStore;
/// use slidegate::testing::{FailingStore, StoreFailure};
/// use slidegate::{Limiter, Rule};
///
/// let limiter = Limiter::new(FailingStore::new(MemoryStore::new()));
/// let login = Rule::new("login", "5/1m")?;
/// limiter.store().fail(StoreFailure::Unavailable);
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
    failure: Mutex<Option<StoreFailure>>,
    calls: AtomicU64,
}

impl<S: Store> FailingStore<S> {
    /// A store that works until [`FailingStore::fail`].
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, failure: Mutex::new(None), calls: AtomicU64::new(0) }
    }

    /// Every call fails from now on.
    pub fn fail(&self, failure: StoreFailure) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    /// Calls succeed again.
    pub fn recover(&self) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Number of calls; a batch is one.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The wrapped store.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// Counts a call, and returns its failure, if any.
    fn asked(&self) -> Option<StoreFailure> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass<T, E: From<StoreError>>(
        &self,
        executed: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        match self.asked() {
            None => executed.await,
            Some(StoreFailure::Ambiguous) => {
                let _lost = executed.await;
                Err(StoreFailure::Ambiguous.error().into())
            }
            Some(failure) => Err(failure.error().into()),
        }
    }
}

/// The answers of a batch that failed.
fn all_fail<'a>(
    admissions: &[Admission<'a>],
    failure: StoreFailure,
) -> Vec<Result<Decision<'a>, StoreError>> {
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
        // `None` if the wrapped store has no synchronous check: `check` counts that call.
        let failure = *self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let executed = match failure {
            None | Some(StoreFailure::Ambiguous) => self.store.try_check(call, admission)?,
            Some(failure) => Err(failure.error()),
        };
        self.calls.fetch_add(1, Ordering::Relaxed);
        Some(if failure == Some(StoreFailure::Ambiguous) {
            Err(StoreFailure::Ambiguous.error())
        } else {
            executed
        })
    }

    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        match self.asked() {
            None => self.store.check_batch(call, admissions).await,
            Some(StoreFailure::Ambiguous) => {
                let _lost = self.store.check_batch(call, admissions).await;
                all_fail(admissions, StoreFailure::Ambiguous)
            }
            Some(failure) => all_fail(admissions, failure),
        }
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.pass(self.store.peek(call, admission)).await
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        self.pass(self.store.update(call, update)).await
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

    async fn share_secret(&self, own: &[u8; SECRET_BYTES]) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        self.pass(self.store.share_secret(own)).await
    }

    fn splits_keys(&self) -> bool {
        self.store.splits_keys()
    }

    fn stats(&self) -> Option<Stats> {
        self.store.stats()
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.store.wait_clock()
    }
}

impl<S: LocalStore> LocalStore for FailingStore<S> {}
