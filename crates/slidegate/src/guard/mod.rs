//! The guard between a limiter and its store: how requests are answered when the store is slow or gone.
//!
//! ```text
//! request -> deny cache -> circuit breaker -> deadline -> store
//!               |               |                |          |
//!               v               +----------------+----------+--> failure -> outage policy: deny, allow, local
//!        denied until then
//! ```
//!
//! A [remote store](crate::store::Store::is_remote) gets all of it, other stores only what [`GuardOptions`] ask for. The outage
//! policy is that of the call or, without one, that of the strictest rule of the admission. `Deny` returns the store's
//! error, `Allow` a degraded decision without numbers, `Local` one by limits within this process.

mod breaker;
mod deny_cache;
mod local_limits;
mod options;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::rule::OnStoreError;
use crate::store::{CheckError, Store};
use crate::time::Clock;
use breaker::{Breaker, Change};
use deny_cache::{DenyCache, Missed};
use local_limits::LocalLimits;
use options::{Deadline, Observer};

pub use options::{DENY_CACHE_HOLD, GuardEvent, GuardOptions};

/// What stands between a limiter and its store.
pub(crate) struct Guard {
    breaker: Option<Breaker>,
    deny_cache: Option<DenyCache>,
    deadline: Option<Deadline>,
    observer: Option<Observer>,
    /// Made when the policy `Local` is first needed.
    local: OnceLock<LocalLimits>,
    /// Whether what the store admits is charged to the local limits too.
    keeps_warm: bool,
    failures: AtomicU64,
    degraded: AtomicU64,
}

/// The settings of a call, and the clock by which its process waits.
#[derive(Clone, Copy)]
pub(crate) struct GuardedCall<'c> {
    pub(crate) clock: &'c dyn Clock,
    /// The instant of the call, if it is not the store's own.
    pub(crate) at_us: Option<u64>,
    pub(crate) policy: Option<OnStoreError>,
    pub(crate) deadline: Option<Duration>,
    /// Whether the store is asked while the breaker is open, too.
    pub(crate) probes: bool,
}

impl GuardedCall<'_> {
    fn now_us(self) -> u64 {
        self.at_us.unwrap_or_else(|| self.clock.now_us())
    }
}

/// What the guard knows without the store.
pub(crate) enum Known<'a> {
    Denied(Decision<'a>),
    /// The store is to be asked.
    Unknown(Option<Missed>),
}

impl Guard {
    pub(crate) fn new(store: &impl Store, options: GuardOptions) -> Self {
        let is_remote = store.is_remote();
        let breaker = options.breaker.unwrap_or(is_remote);
        let hold = options.deny_cache.or_else(|| store.deny_cache_hold());
        let hold = hold.unwrap_or(if is_remote { DENY_CACHE_HOLD } else { Duration::ZERO });
        Self {
            breaker: breaker.then(Breaker::new),
            deny_cache: (!hold.is_zero()).then(|| DenyCache::new(hold)),
            deadline: options.deadline,
            observer: options.observer,
            local: OnceLock::new(),
            keeps_warm: breaker,
            failures: AtomicU64::new(0),
            degraded: AtomicU64::new(0),
        }
    }

    /// Looks for a denial that still holds. Calls at given instants are not answered from it, nor are charges on keys
    /// with shards: a denial was that of two shards, and the next request may draw others.
    #[inline]
    pub(crate) fn known<'a>(&self, call: GuardedCall<'_>, admission: &Admission<'a>) -> Known<'a> {
        match &self.deny_cache {
            Some(cache) if call.at_us.is_none() && !admission.has_shards() => {
                match cache.find(call.clock.now_us(), admission) {
                    Ok(denied) => Known::Denied(denied),
                    Err(missed) => Known::Unknown(Some(missed)),
                }
            }
            _ => Known::Unknown(None),
        }
    }

    /// The answer that needs no call of the store: a denial that still holds, or that of the outage policy while the
    /// circuit breaker is open.
    #[inline]
    pub(crate) fn answer_without_store<'a>(
        &self,
        call: GuardedCall<'_>,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, CheckError>> {
        if let Known::Denied(denied) = self.known(call, admission) {
            return Some(Ok(denied));
        }
        let breaker = self.breaker.as_ref().filter(|_| !call.probes)?;
        let error = breaker.refusal(|| call.clock.now_us())?;
        Some(self.without_store(call, admission, error, true))
    }

    /// Asks the store, unless the breaker is open, until the deadline. `ask` does nothing before it is polled.
    #[inline]
    pub(crate) async fn ask<T, E>(
        &self,
        call: GuardedCall<'_>,
        ask: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E>
    where
        E: From<StoreError> + AsStoreError,
    {
        let Some(breaker) = &self.breaker else { return self.within_deadline(call, ask).await };
        let permit =
            if call.probes { breaker.permit_always() } else { breaker.permit(|| call.clock.now_us())? };
        let answer = self.within_deadline(call, ask).await;
        let failure = answer.as_ref().err().and_then(E::as_store_error);
        match (permit.report(|| call.clock.now_us(), failure), failure) {
            (Change::Opened, Some(error)) => self.tell(GuardEvent::Opened { error }),
            (Change::Closed, _) => self.tell(GuardEvent::Closed),
            _ => {}
        }
        answer
    }

    /// The same for a batch, which fails if none of it is answered. Returns one answer per admission.
    pub(crate) async fn ask_batch<'a>(
        &self,
        call: GuardedCall<'_>,
        count: usize,
        ask: impl Future<Output = Vec<Result<Decision<'a>, StoreError>>>,
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        let mut answers = Vec::new();
        let asked = self.ask(call, async {
            answers = ask.await;
            let answered = answers.iter().any(Result::is_ok);
            let failure = answers.iter().find_map(|answer| answer.as_ref().err()).filter(|_| !answered);
            failure.cloned().map_or(Ok(()), Err)
        });
        let failed = asked.await.err();
        if answers.is_empty() {
            let error = failed.unwrap_or_else(fewer_answers);
            answers = vec![Err(error); count];
        }
        answers.resize_with(count, || Err(fewer_answers()));
        answers
    }

    async fn within_deadline<T, E: From<StoreError>>(
        &self,
        call: GuardedCall<'_>,
        ask: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let Some(Deadline { after, timer }) = &self.deadline else { return ask.await };
        let after = call.deadline.unwrap_or(*after);
        let (mut ask, mut expiry) = (pin!(ask), timer.sleep(after));
        let answer = poll_fn(|context| match ask.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => expiry.as_mut().poll(context).map(|()| None),
        });
        answer.await.unwrap_or_else(|| {
            let why =
                format!("no answer came within {after:?}; see what keeps the store, or raise the deadline");
            Err(StoreError::Ambiguous { why: why.into() }.into())
        })
    }

    /// The answer to an admission that the store was asked about. `charging`: whether it was to be charged.
    #[inline]
    pub(crate) fn answer<'a>(
        &self,
        call: GuardedCall<'_>,
        admission: &Admission<'a>,
        missed: Option<Missed>,
        decided: Result<Decision<'a>, StoreError>,
        charging: bool,
    ) -> Result<Decision<'a>, CheckError> {
        match decided {
            Ok(decision) => {
                if let (Some(cache), Some(missed)) = (&self.deny_cache, missed) {
                    cache.note(missed, call.clock.now_us(), admission, &decision);
                }
                if self.keeps_warm && charging && decision.is_charged() {
                    self.keep_warm(call, admission);
                }
                Ok(decision)
            }
            Err(error) => self.without_store(call, admission, error, charging),
        }
    }

    /// The same, replacing a failure in place, for callers that must not copy a decision.
    #[cold]
    pub(crate) fn replace_failure<'a>(
        &self,
        call: GuardedCall<'_>,
        admission: &Admission<'a>,
        decided: &mut Result<Decision<'a>, CheckError>,
    ) {
        if let Err(CheckError::Store(error)) = decided {
            let error = error.clone();
            *decided = self.without_store(call, admission, error, true);
        }
    }

    /// The outage policy's answer.
    #[cold]
    pub(crate) fn without_store<'a>(
        &self,
        call: GuardedCall<'_>,
        admission: &Admission<'a>,
        error: StoreError,
        charging: bool,
    ) -> Result<Decision<'a>, CheckError> {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let policy = call.policy.unwrap_or_else(|| strictest(admission));
        let decision = match policy {
            OnStoreError::Deny => {
                self.tell(GuardEvent::Degraded { admission, policy, allowed: false, error: &error });
                return Err(error.into());
            }
            OnStoreError::Allow => Decision::degraded_admission(admission, error),
            OnStoreError::Local(_) => {
                let local = self.local.get_or_init(LocalLimits::new);
                local.decide(call.now_us(), call.policy, admission, error, charging)?
            }
        };
        self.degraded.fetch_add(1, Ordering::Relaxed);
        if let (Some(_), Some(error)) = (&self.observer, decision.store_error()) {
            self.tell(GuardEvent::Degraded { admission, policy, allowed: decision.allowed(), error });
        }
        Ok(decision)
    }

    fn keep_warm(&self, call: GuardedCall<'_>, admission: &Admission<'_>) {
        let is_local = |policy| matches!(policy, OnStoreError::Local(_));
        let needed = match call.policy {
            Some(policy) => is_local(policy),
            None => admission.asks().iter().any(|ask| is_local(ask.rule.on_store_error())),
        };
        if needed {
            let local = self.local.get_or_init(LocalLimits::new);
            local.keep_warm(call.now_us(), call.policy, admission.asks());
        }
    }

    /// Drops the denials of states that were changed, given as rule names and keys.
    pub(crate) fn states_changed<'s>(&self, states: impl Iterator<Item = (&'s str, &'s str)>) {
        if let Some(cache) = &self.deny_cache {
            cache.drop_states(states);
        }
    }

    /// Drops all denials: a rule was changed.
    pub(crate) fn rule_changed(&self) {
        if let Some(cache) = &self.deny_cache {
            cache.drop_all();
        }
    }

    fn tell(&self, event: GuardEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    /// Calls that the store did not answer, and how many of them the policy answered with a decision.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.failures.load(Ordering::Relaxed), self.degraded.load(Ordering::Relaxed))
    }

    /// Requests that the deny cache answered.
    pub(crate) fn cached_denials(&self) -> u64 {
        self.deny_cache.as_ref().map_or(0, DenyCache::hits)
    }

    #[inline]
    pub(crate) fn has_breaker(&self) -> bool {
        self.breaker.is_some()
    }

    pub(crate) fn breaker_is_open(&self) -> bool {
        self.breaker.as_ref().is_some_and(Breaker::is_open)
    }
}

/// The failure of the store in an error, if it is one.
pub(crate) trait AsStoreError {
    fn as_store_error(&self) -> Option<&StoreError>;
}

impl AsStoreError for StoreError {
    fn as_store_error(&self) -> Option<&StoreError> {
        Some(self)
    }
}

impl AsStoreError for crate::store::UpdateError {
    fn as_store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

pub(crate) fn fewer_answers() -> StoreError {
    StoreError::Ambiguous { why: "it gave fewer answers than it was asked for; see its log".into() }
}

/// The policy of the strictest rule. Shadow rules take no part: if there are no others it is `Allow`, because a shadow
/// rule never denies.
fn strictest(admission: &Admission<'_>) -> OnStoreError {
    let enforced = admission.asks().iter().filter(|ask| !ask.rule.shadow());
    let strictness = |policy: &OnStoreError| match policy {
        OnStoreError::Allow => 0,
        OnStoreError::Local(_) => 1,
        OnStoreError::Deny => 2,
    };
    enforced.map(|ask| ask.rule.on_store_error()).max_by_key(strictness).unwrap_or(OnStoreError::Allow)
}

#[cfg(test)]
mod tests;
