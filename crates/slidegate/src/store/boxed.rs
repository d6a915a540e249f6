//! A type-erased store, chosen at run time.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use super::call::Call;
use super::contract::{SECRET_BYTES, Store, Update};
use super::error::UpdateError;
use super::stats::Stats;
use super::usage::LimitUsage;
use crate::charge::Admission;
use crate::decision::Decision;
use crate::error::StoreError;
use crate::key::Key;
use crate::receipt::Applied;
use crate::rule::Rule;
use crate::time::Clock;

type BoxFuture<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// Any [`Store`], type-erased: for programs whose settings choose the store.
///
/// A check of a store that never waits is a direct call; all other futures are boxed.
///
/// ```
/// use slidegate::store::{BoxStore, MemoryStore};
/// use slidegate::{Limiter, Rule};
///
/// # fn shared() -> BoxStore { BoxStore::new(MemoryStore::new()) }
/// async fn first_decision(in_memory: bool) -> Result<bool, Box<dyn std::error::Error>> {
///     let store = if in_memory { BoxStore::new(MemoryStore::new()) } else { shared() };
///     let limiter = Limiter::new(store);
///     Ok(limiter.check_async(&Rule::new("login", "5/1m")?, "alice").await?.allowed())
/// }
/// ```
pub struct BoxStore(Box<dyn DynStore>);

impl BoxStore {
    /// Erases the type of a store.
    #[must_use]
    pub fn new(store: impl Store + 'static) -> Self {
        Self(Box::new(store))
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxStore").finish_non_exhaustive()
    }
}

/// The object-safe form of [`Store`], with boxed futures.
trait DynStore: Send + Sync {
    fn check<'s, 'a: 's>(
        &'s self,
        call: Call,
        admission: &'s Admission<'a>,
    ) -> BoxFuture<'s, Result<Decision<'a>, StoreError>>;

    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>>;

    fn check_batch<'s, 'a: 's>(
        &'s self,
        call: Call,
        admissions: &'s [Admission<'a>],
    ) -> BoxFuture<'s, Vec<Result<Decision<'a>, StoreError>>>;

    fn peek<'s, 'a: 's>(
        &'s self,
        call: Call,
        admission: &'s Admission<'a>,
    ) -> BoxFuture<'s, Result<Decision<'a>, StoreError>>;

    fn update<'s>(&'s self, call: Call, update: Update<'s>) -> BoxFuture<'s, Result<Applied, UpdateError>>;

    fn inspect<'s>(
        &'s self,
        call: Call,
        rule: &'s Rule,
        key: Key<'s>,
    ) -> BoxFuture<'s, Result<Vec<LimitUsage>, StoreError>>;

    fn change<'s>(&'s self, call: Call, rule: &'s Rule) -> BoxFuture<'s, Result<(), StoreError>>;

    fn secret(&self) -> BoxFuture<'_, Result<Option<[u8; SECRET_BYTES]>, StoreError>>;

    fn share_secret<'s>(
        &'s self,
        own: &'s [u8; SECRET_BYTES],
    ) -> BoxFuture<'s, Result<Vec<[u8; SECRET_BYTES]>, StoreError>>;

    fn is_remote(&self) -> bool;

    fn deny_cache_hold(&self) -> Option<Duration>;

    fn splits_keys(&self) -> bool;

    fn stats(&self) -> Option<Stats>;

    fn wait_clock(&self) -> &dyn Clock;
}

impl<S: Store> DynStore for S {
    fn check<'s, 'a: 's>(
        &'s self,
        call: Call,
        admission: &'s Admission<'a>,
    ) -> BoxFuture<'s, Result<Decision<'a>, StoreError>> {
        Box::pin(Store::check(self, call, admission))
    }

    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        Store::try_check(self, call, admission)
    }

    fn check_batch<'s, 'a: 's>(
        &'s self,
        call: Call,
        admissions: &'s [Admission<'a>],
    ) -> BoxFuture<'s, Vec<Result<Decision<'a>, StoreError>>> {
        Box::pin(Store::check_batch(self, call, admissions))
    }

    fn peek<'s, 'a: 's>(
        &'s self,
        call: Call,
        admission: &'s Admission<'a>,
    ) -> BoxFuture<'s, Result<Decision<'a>, StoreError>> {
        Box::pin(Store::peek(self, call, admission))
    }

    fn update<'s>(&'s self, call: Call, update: Update<'s>) -> BoxFuture<'s, Result<Applied, UpdateError>> {
        Box::pin(Store::update(self, call, update))
    }

    fn inspect<'s>(
        &'s self,
        call: Call,
        rule: &'s Rule,
        key: Key<'s>,
    ) -> BoxFuture<'s, Result<Vec<LimitUsage>, StoreError>> {
        Box::pin(Store::inspect(self, call, rule, key))
    }

    fn change<'s>(&'s self, call: Call, rule: &'s Rule) -> BoxFuture<'s, Result<(), StoreError>> {
        Box::pin(Store::change(self, call, rule))
    }

    fn secret(&self) -> BoxFuture<'_, Result<Option<[u8; SECRET_BYTES]>, StoreError>> {
        Box::pin(Store::secret(self))
    }

    fn share_secret<'s>(
        &'s self,
        own: &'s [u8; SECRET_BYTES],
    ) -> BoxFuture<'s, Result<Vec<[u8; SECRET_BYTES]>, StoreError>> {
        Box::pin(Store::share_secret(self, own))
    }

    fn is_remote(&self) -> bool {
        Store::is_remote(self)
    }

    fn deny_cache_hold(&self) -> Option<Duration> {
        Store::deny_cache_hold(self)
    }

    fn splits_keys(&self) -> bool {
        Store::splits_keys(self)
    }

    fn stats(&self) -> Option<Stats> {
        Store::stats(self)
    }

    fn wait_clock(&self) -> &dyn Clock {
        Store::wait_clock(self)
    }
}

impl Store for BoxStore {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        match self.0.try_check(call, admission) {
            Some(answer) => answer,
            None => self.0.check(call, admission).await,
        }
    }

    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        self.0.try_check(call, admission)
    }

    async fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, StoreError>> {
        self.0.check_batch(call, admissions).await
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        self.0.peek(call, admission).await
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        self.0.update(call, update).await
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        self.0.inspect(call, rule, key).await
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        self.0.change(call, rule).await
    }

    async fn secret(&self) -> Result<Option<[u8; SECRET_BYTES]>, StoreError> {
        self.0.secret().await
    }

    async fn share_secret(&self, own: &[u8; SECRET_BYTES]) -> Result<Vec<[u8; SECRET_BYTES]>, StoreError> {
        self.0.share_secret(own).await
    }

    fn is_remote(&self) -> bool {
        self.0.is_remote()
    }

    fn deny_cache_hold(&self) -> Option<Duration> {
        self.0.deny_cache_hold()
    }

    fn splits_keys(&self) -> bool {
        self.0.splits_keys()
    }

    fn stats(&self) -> Option<Stats> {
        self.0.stats()
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.0.wait_clock()
    }
}
