//! A stand-in for a store that could not be opened.

use super::call::Call;
use super::contract::{Store, Update};
use super::error::UpdateError;
use super::usage::LimitUsage;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::key::Key;
use crate::receipt::Applied;
use crate::rule::Rule;

/// A store that answers every call with the same failure: a limiter over it answers by the outage policy alone.
///
/// ```
/// use slidegate::rule::OnStoreError;
/// use slidegate::store::{FailedStore, StoreError};
/// use slidegate::{Limiter, Rule};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(FailedStore::new(StoreError::Unavailable { why: "no route to host".into() }));
/// let api = Rule::new("api", "60/1m")?;
/// assert!(limiter.check_async(&api, "alice").await.is_err());
/// let decision = limiter.with_outage_policy(OnStoreError::Allow).check_async(&api, "alice").await?;
/// assert!(decision.allowed() && decision.degraded());
/// # Ok(())
/// # }
/// # let mut asked = std::pin::pin!(example());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(matches!(asked.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(()))));
/// ```
#[derive(Debug, Clone)]
pub struct FailedStore(StoreError);

impl FailedStore {
    /// A store whose calls all fail with `error`.
    #[must_use]
    pub fn new(error: StoreError) -> Self {
        Self(error)
    }

    fn failed<T, E: From<StoreError>>(&self) -> Result<T, E> {
        Err(self.0.clone().into())
    }
}

impl Store for FailedStore {
    async fn check<'a>(&self, _call: Call, _admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.failed()
    }

    async fn peek<'a>(&self, _call: Call, _admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.failed()
    }

    async fn update(&self, _call: Call, _update: Update<'_>) -> Result<Applied, UpdateError> {
        self.failed()
    }

    async fn inspect(&self, _call: Call, _rule: &Rule, _key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        self.failed()
    }

    async fn change(&self, _call: Call, _rule: &Rule) -> Result<(), StoreError> {
        self.failed()
    }
}
