//! What the guard does, and what it reports.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::charge::Admission;
use crate::error::StoreError;
use crate::rule::OnStoreError;
use crate::time::Timer;

/// How long a denial is answered from the deny cache, at most, by default.
pub const DENY_CACHE_HOLD: Duration = Duration::from_secs(1);

/// What a limiter does around its store: circuit breaker, deny cache, deadline, and a function that is told of outages.
///
/// By default a [remote store](crate::store::Store::is_remote) has a circuit breaker and a deny cache, and other stores have
/// neither. A deadline is for stores without one of their own: the store of `slidegate-redis` keeps its own.
///
/// ```
/// use slidegate::guard::{GuardEvent, GuardOptions};
/// use slidegate::store::MemoryStore;
/// use slidegate::{Limiter, Rule};
/// use std::time::Duration;
///
/// let options = GuardOptions::default()
///     .deny_cache(Duration::from_millis(200))
///     .on_event(|event| match event {
///         GuardEvent::Opened { error } => eprintln!("the store is not asked for a while: {error}"),
///         GuardEvent::Closed => eprintln!("the store answers again"),
///         _ => {}
///     });
/// let limiter = Limiter::guarded(MemoryStore::new(), options);
/// assert!(limiter.check(&Rule::new("login", "5/1m")?, "alice")?.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct GuardOptions {
    pub(super) breaker: Option<bool>,
    /// Zero for none.
    pub(super) deny_cache: Option<Duration>,
    pub(super) deadline: Option<Deadline>,
    pub(super) observer: Option<Observer>,
}

pub(super) type Observer = Arc<dyn Fn(GuardEvent<'_>) + Send + Sync>;

/// A deadline, and the timer that it is kept by.
#[derive(Clone)]
pub(super) struct Deadline {
    pub(super) after: Duration,
    pub(super) timer: Arc<dyn ErasedTimer>,
}

/// Something that happened to the store or to an answer, for logs, metrics and alerts.
///
/// It is told on the task of the call that found it, so what is done with it should be short.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum GuardEvent<'e> {
    /// The circuit breaker opened: the store is asked by one call at a time, after pauses, until it answers.
    Opened {
        /// The failure that opened it.
        error: &'e StoreError,
    },
    /// The store answered a probe, and is asked by all calls again.
    Closed,
    /// The outage policy answered an admission: with a degraded decision, or under `Deny` with the store's error.
    Degraded {
        /// What was asked.
        admission: &'e Admission<'e>,
        /// The policy that answered.
        policy: OnStoreError,
        /// Whether it admitted.
        allowed: bool,
        /// Why the store did not answer.
        error: &'e StoreError,
    },
}

impl GuardOptions {
    /// Whether a circuit breaker stands before the store. It opens after five failures in a row; then the outage policy
    /// answers at once, and one call at a time probes the store, at most every second. With it the limits of the policy
    /// [`Local`](OnStoreError::Local) count what the store admits.
    #[must_use]
    pub fn breaker(self, breaker: bool) -> Self {
        Self { breaker: Some(breaker), ..self }
    }

    /// Answers the same charges from a cache for as long as they are denied, but at most for `hold`
    /// ([`DENY_CACHE_HOLD`] by default, unless [the store has a setting](crate::store::Store::deny_cache_hold)); zero for no cache.
    ///
    /// `used`, `remaining` and the announced instant are those of the first denial: units that other costs spend
    /// meanwhile are not in them. Units that another process gives back are seen after the hold.
    #[must_use]
    pub fn deny_cache(self, hold: Duration) -> Self {
        Self { deny_cache: Some(hold), ..self }
    }

    /// Gives up a call of the store after that time: it fails as [`StoreError::Ambiguous`]. A view
    /// [with a deadline](crate::Limiter::with_deadline) has its own instead.
    #[must_use]
    pub fn deadline(self, after: Duration, timer: impl Timer + 'static) -> Self {
        Self { deadline: Some(Deadline { after, timer: Arc::new(timer) }), ..self }
    }

    /// Calls `observer` for every [`GuardEvent`].
    #[must_use]
    pub fn on_event(self, observer: impl Fn(GuardEvent<'_>) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)), ..self }
    }
}

impl fmt::Debug for GuardOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { breaker, deny_cache, deadline, observer: _ } = self;
        let mut shown = f.debug_struct("GuardOptions");
        shown.field("breaker", breaker).field("deny_cache", deny_cache);
        shown.field("deadline", &deadline.as_ref().map(|deadline| deadline.after)).finish_non_exhaustive()
    }
}

/// A [`Timer`] of any type.
pub(super) trait ErasedTimer: Send + Sync {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<T: Timer> ErasedTimer for T {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Timer::sleep(self, duration))
    }
}
