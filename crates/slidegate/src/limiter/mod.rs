//! The limiter: a store, the outage policy, and queues of waiting requests.
//!
//! | verbs of [`Limiter`] | what they do |
//! |---|---|
//! | `check`, `check_n`, `check_all`, `decide` | decide and, if everything passes, charge: one unit, `n` units, several charges, an [`Admission`] |
//! | `check_batch` | decides several admissions, each on its own |
//! | `peek`, `peek_all`, `peek_admission` | decide without charging |
//! | `inspect` | reports what is used of every limit of a rule |
//! | `acquire`, `acquire_all` | wait until the request is admitted, first come, first served per key |
//! | `refund`, `settle` | take back an admission by its receipt, or replace its cost by the actual cost |
//! | `credit`, `reset` | give back units of a key, or drop its state |
//! | `change` | applies a live change of a rule to the states of all its keys |
//!
//! Every verb has an asynchronous form on every store, named with `_async`: `check_async`. A local store, in memory or in
//! a file, has the blocking form too, without the suffix.

mod acquire;
mod async_verbs;
mod blocking;
mod waiters;

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::guard::{Guard, GuardOptions, GuardedCall};
use crate::rule::OnStoreError;
use crate::store::{BudgetError, Call, MemoryStore, Stats, Store, Update};
use crate::time::{Clock, SystemClock, deadline_after};
use waiters::Waiters;

pub use waiters::WAITERS_MAX;

/// The rate limiter: decides and charges over any [`Store`], for all threads and tasks of this process.
///
/// Share it behind an `Arc`, or in a `static`. Every verb has an `_async` form on every store; on a local store
/// (memory, SQLite) it has a blocking form too.
///
/// ```
/// use slidegate::{Limiter, Rule};
///
/// let limiter = Limiter::in_memory();
/// let login = Rule::new("login", "5/1m")?;
/// for _ in 0..5 {
///     assert!(limiter.check(&login, "alice")?.allowed());
/// }
/// let refused = limiter.check(&login, "alice")?;
/// assert!(!refused.allowed());
/// assert!(refused.retry_after() <= refused.window());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Tests use a manual clock:
///
/// ```
/// use slidegate::time::ManualClock;
/// use slidegate::{Limiter, Rule};
/// use std::time::Duration;
///
/// let api = Rule::new("api", "1/10s")?;
/// let limiter = Limiter::with_clock(ManualClock::at_us(1_745_000_145_000_000));
/// assert!(limiter.check(&api, "alice")?.allowed());
/// let wait = limiter.check(&api, "alice")?.retry_after().expect("a denial of the store has a wait");
/// limiter.clock().advance(wait - Duration::from_micros(1));
/// assert!(!limiter.check(&api, "alice")?.allowed());
/// limiter.clock().advance(Duration::from_micros(1));
/// assert!(limiter.check(&api, "alice")?.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In a task, rules are shared by an `Arc`; receipts and [owned decisions](Decision::into_owned) borrow nothing:
///
/// ```
/// # mod tokio { pub fn spawn<F: Future + Send + 'static>(_: F) where F::Output: Send {} }
/// use slidegate::{Limiter, Rule};
/// use std::sync::Arc;
///
/// # async fn tokens_used() -> u64 { 812 }
/// let limiter = Arc::new(Limiter::in_memory());
/// let tokens = Arc::new(Rule::new("tokens", "100000/1h")?);
/// tokio::spawn(async move {
///     let user = String::from("alice");
///     let estimated = limiter.check_n_async(&tokens, &user, 1_000).await?;
///     if let Some(receipt) = estimated.receipt() {
///         limiter.settle_async(&receipt, tokens_used().await).await?;
///     }
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// `H` is the core: owned, or borrowed by a view such as [`Limiter::with_outage_policy`] returns.
pub struct Limiter<S = MemoryStore, H = Core<S>> {
    core: H,
    policy: Option<OnStoreError>,
    call: Call,
    deadline: Option<Duration>,
    probes: bool,
    store: PhantomData<fn() -> S>,
}

/// The parts that a limiter shares with its views.
pub struct Core<S> {
    store: S,
    waiters: Waiters,
    guard: Guard,
}

/// Statistics of a limiter since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimiterStats {
    /// Acquisitions that are waiting.
    pub waiting: u64,
    /// Checks and peeks that the store did not answer.
    pub store_failures: u64,
    /// Of those, how many the outage policy answered with a decision.
    pub degraded: u64,
    /// Checks that the deny cache answered.
    pub cached_denials: u64,
    /// Whether the circuit breaker is open: the store is not asked but by probes.
    pub breaker_is_open: bool,
    /// Statistics of the store, if it has them without a call.
    pub store: Option<Stats>,
}

impl Limiter {
    /// A limiter whose states live in this process, on the system's clock.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// [`Limiter::in_memory`] with a budget of `bytes` instead of [`crate::store::BUDGET_BYTES_DEFAULT`].
    ///
    /// A new key that does not fit is [`StoreError::Full`](crate::StoreError::Full), which the outage policy answers, or takes
    /// the place of an old one where its rule says so.
    pub fn with_budget(bytes: u64) -> Result<Self, BudgetError> {
        Ok(Self::new(MemoryStore::with_budget(bytes)?))
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// A limiter whose states live in this process, on `clock`.
    #[must_use]
    pub fn with_clock(clock: C) -> Self {
        Self::new(MemoryStore::with_clock(clock))
    }
}

impl<C: Clock, H: Borrow<Core<MemoryStore<C>>>> Limiter<MemoryStore<C>, H> {
    /// The clock of the store.
    #[must_use]
    pub fn clock(&self) -> &C {
        self.store().clock()
    }

    /// Drops all keys without live charges; returns how many: [`MemoryStore::sweep`].
    pub fn sweep(&self) -> usize {
        self.store().sweep(self.clock().now_us())
    }
}

impl<S: Store> Limiter<S> {
    /// A limiter over `store`, with the default [guard](crate::guard::GuardOptions).
    #[must_use]
    pub fn new(store: S) -> Self {
        Self::guarded(store, GuardOptions::default())
    }

    /// A limiter over `store` with a circuit breaker, a deny cache and a deadline as the options say.
    ///
    /// The plain verbs of a local store use the outage policy alone.
    #[must_use]
    pub fn guarded(store: S, options: GuardOptions) -> Self {
        let guard = Guard::new(&store, options);
        let core = Core { store, waiters: Waiters::default(), guard };
        Self { core, policy: None, call: Call::now(), deadline: None, probes: false, store: PhantomData }
    }
}

impl<S: Store, H: Borrow<Core<S>>> Limiter<S, H> {
    fn core(&self) -> &Core<S> {
        self.core.borrow()
    }

    /// The store.
    #[must_use]
    #[inline]
    pub fn store(&self) -> &S {
        &self.core().store
    }

    /// A view with the same verbs whose calls use `policy` when the store fails, instead of the policies of their
    /// rules; with `None` the rules' policies apply. `Deny` returns the store's error, `Allow` a degraded decision
    /// without numbers, `Local` one by limits within this process.
    ///
    /// ```
    /// use slidegate::rule::OnStoreError;
    /// use slidegate::{Limiter, Rule};
    ///
    /// let limiter = Limiter::in_memory();
    /// let quota = Rule::new("quota", "9500/24h")?;
    /// // Calls of one unit pass while the store is down, calls of a hundred do not.
    /// let decision = limiter.with_outage_policy(OnStoreError::Allow).check(&quota, "key1")?;
    /// assert!(decision.allowed() && !decision.degraded());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_outage_policy(&self, policy: impl Into<Option<OnStoreError>>) -> Limiter<S, &Core<S>> {
        Limiter { policy: policy.into(), ..self.view() }
    }

    /// A view with the same verbs whose calls have this deadline instead of the store's own.
    ///
    /// A view of a view borrows the first one: keep both, or call the verb in the same statement.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Limiter<S, &Core<S>> {
        Limiter { deadline: Some(deadline), ..self.view() }
    }

    /// A view with the same verbs whose calls are made at that instant, in microseconds since 1970, instead of the
    /// store's time: for replays, simulations and tests. `acquire` still waits by the store's clock.
    ///
    /// ```
    /// use slidegate::{Limiter, Rule};
    ///
    /// let (limiter, api) = (Limiter::in_memory(), Rule::new("api", "1/10s")?);
    /// assert!(limiter.at_us(5_000_000).check(&api, "alice")?.allowed());
    /// let refused = limiter.at_us(6_000_000).check(&api, "alice")?;
    /// assert_eq!(refused.retry_after().map(|wait| wait.as_secs()), Some(9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the instant is after [`crate::time::TIME_MAX_US`].
    #[must_use]
    pub fn at_us(&self, at_us: u64) -> Limiter<S, &Core<S>> {
        Limiter { call: Call::at_us(at_us), ..self.view() }
    }

    /// A view with the same verbs whose calls ask the store while the circuit breaker is open, too: for health checks. An
    /// answer of the store closes the breaker, so a process without other requests notices that the store is back.
    ///
    /// ```
    /// use slidegate::guard::GuardOptions;
    /// use slidegate::store::MemoryStore;
    /// use slidegate::testing::{FailingStore, StoreFailure, block_on};
    /// use slidegate::{Limiter, Rule};
    ///
    /// let store = FailingStore::new(MemoryStore::new());
    /// let limiter = Limiter::guarded(store, GuardOptions::default().breaker(true));
    /// let health = Rule::new("health", "1000/1s")?;
    /// limiter.store().fail(StoreFailure::Unavailable);
    /// while !limiter.stats().breaker_is_open {
    ///     assert!(block_on(limiter.inspect_async(&health, "probe")).is_err());
    /// }
    /// limiter.store().recover();
    /// assert!(block_on(limiter.inspect_async(&health, "probe")).is_err(), "it is not asked");
    /// assert!(block_on(limiter.probing().inspect_async(&health, "probe")).is_ok());
    /// assert!(!limiter.stats().breaker_is_open);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn probing(&self) -> Limiter<S, &Core<S>> {
        Limiter { probes: true, ..self.view() }
    }

    fn view(&self) -> Limiter<S, &Core<S>> {
        let Self { policy, call, deadline, probes, .. } = *self;
        Limiter { core: self.core(), policy, call, deadline, probes, store: PhantomData }
    }

    /// Statistics since the limiter was created.
    pub fn stats(&self) -> LimiterStats {
        let Core { store, waiters, guard } = self.core();
        let (store_failures, degraded) = guard.counts();
        LimiterStats {
            waiting: waiters.waiting() as u64,
            store_failures,
            degraded,
            cached_denials: guard.cached_denials(),
            breaker_is_open: guard.breaker_is_open(),
            store: store.stats(),
        }
    }

    #[inline]
    fn call(&self) -> Call {
        match self.deadline {
            None => self.call,
            Some(deadline) => self.call.with_deadline(deadline_after(deadline)),
        }
    }

    #[inline]
    fn guarded_call(&self) -> GuardedCall<'_> {
        let Self { policy, call, deadline, probes, .. } = *self;
        GuardedCall { clock: self.store().wait_clock(), at_us: call.instant_us(), policy, deadline, probes }
    }

    /// The decision on an admission of unlimited keys only, which needs no store.
    fn decision_without_store<'a>(admission: &Admission<'a>) -> Option<Decision<'a>> {
        admission.asks().is_empty().then(|| Decision::new(admission, [], None))
    }

    /// After an update: drops the cached denials of the states that it changes, and wakes the acquisitions that wait for
    /// them.
    fn updated(&self, update: Update<'_>) {
        match update {
            Update::Refund(receipt) | Update::Settle(receipt, _) => {
                self.states_changed(receipt.charges().iter().map(|charge| {
                    // Denials and waiters are about the whole key, not about one of its shards.
                    (charge.rule(), charge.key().unsharded().identity())
                }));
            }
            Update::Credit(Charge { rule, key, .. }) | Update::Reset(rule, key) => {
                self.states_changed([(rule.name(), key.identity())].into_iter());
            }
        }
    }

    fn states_changed<'s>(&self, states: impl Iterator<Item = (&'s str, &'s str)> + Clone) {
        self.core().guard.states_changed(states.clone());
        self.core().waiters.wake(states);
    }
}

impl<S, H> fmt::Debug for Limiter<S, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, deadline, .. } = self;
        f.debug_struct("Limiter").field("policy", policy).field("deadline", deadline).finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Core<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").finish_non_exhaustive()
    }
}
