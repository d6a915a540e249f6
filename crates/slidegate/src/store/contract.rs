//! The trait that every store implements.

use std::time::Duration;

use super::call::Call;
use super::error::{CheckError, UpdateError};
use super::stats::Stats;
use super::usage::LimitUsage;
use crate::charge::{Admission, Charge};
use crate::decision::Decision;
use crate::error::StoreError;
use crate::key::Key;
use crate::receipt::{Applied, Receipt};
use crate::rule::Rule;
use crate::time::{Clock, block_on, process_clock};

/// Bytes of the secret that receipts are signed with.
pub const SECRET_BYTES: usize = 32;

/// A change of a state other than a check.
#[derive(Debug, Clone, Copy)]
pub enum Update<'u> {
    /// Takes back a whole admission. A receipt works once; a spent or expired one gives nothing back.
    Refund(&'u Receipt),
    /// Replaces the cost of an admission by the actual cost: less is refunded, more is charged now,
    /// unconditionally. It spends the receipt.
    Settle(&'u Receipt, u64),
    /// Gives back the charge's units from the oldest live charges first, at most what is used.
    Credit(Charge<'u>),
    /// Drops the state of a key. Receipts of its earlier charges are void.
    Reset(&'u Rule, Key<'u>),
}

/// Where states live.
///
/// A check, a peek, an inspection, a credit and a reset are one atomic step each, at one reading of the store's clock; a
/// check is so however many charges it has. Other calls are several steps, and calls of others may run in between:
///
/// - a batch is one step per admission;
/// - a refund or settlement of several states may change them one after the other, but spends its receipt once;
/// - a live change goes through the states of the rule, one or a few at a time.
///
/// Nothing happens before a call's future is polled; a future that is dropped before it is ready may or may not have
/// been executed. A failure is never a denial, and says whether the charge
/// [may have been made](StoreError::maybe_charged).
///
/// Users call a [`Limiter`](crate::Limiter), which adds the outage policy and waiting. To write a store: build a
/// [`Decision`] from one [`StateAnswer`](crate::decision::StateAnswer) per ask of the admission, and test it with
/// `slidegate::testing::conformance` (feature `testing`).
///
/// ```
/// use slidegate::store::{Call, MemoryStore, Store, StoreError};
/// use slidegate::{Admission, Rule};
///
/// async fn units_left(store: &impl Store, request: &Admission<'_>) -> Result<Option<u64>, StoreError> {
///     Ok(store.check(Call::now(), request).await?.remaining())
/// }
/// # let api = Rule::new("api", "5/10s")?;
/// # let request = Admission::new(&[api.charge("alice", 2)?])?;
/// # let store = MemoryStore::new();
/// # let mut asked = std::pin::pin!(units_left(&store, &request));
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert_eq!(asked.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(Some(3))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Send + Sync {
    /// Decides and, if everything passes, charges everything. A denial changes nothing.
    fn check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// [`Store::check`] without a future, for a store that never waits. `None`, without any effect, for all others.
    #[inline]
    fn try_check<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> Option<Result<Decision<'a>, StoreError>> {
        let _ = (call, admission);
        None
    }

    /// Decides several admissions, each on its own and in their order, and answers in their order.
    ///
    /// The default checks one after the other.
    fn check_batch<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> impl Future<Output = Vec<Result<Decision<'a>, StoreError>>> + Send {
        async move {
            let mut decisions = Vec::with_capacity(admissions.len());
            for admission in admissions {
                decisions.push(self.check(call, admission).await);
            }
            decisions
        }
    }

    /// Decides without charging.
    fn peek<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
    ) -> impl Future<Output = Result<Decision<'a>, StoreError>> + Send;

    /// Refunds, settles, credits or resets.
    fn update(
        &self,
        call: Call,
        update: Update<'_>,
    ) -> impl Future<Output = Result<Applied, UpdateError>> + Send;

    /// What is used of every limit of a rule, without changing anything.
    fn inspect(
        &self,
        call: Call,
        rule: &Rule,
        key: Key<'_>,
    ) -> impl Future<Output = Result<Vec<LimitUsage>, StoreError>> + Send;

    /// Applies a live change of a rule to all its states. After a failure some of them may have been changed.
    fn change(&self, call: Call, rule: &Rule) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The secret shared by all processes that use this store: receipts that leave a process are signed with it. `None`
    /// for a store that no other process shares.
    fn secret(&self) -> impl Future<Output = Result<Option<[u8; SECRET_BYTES]>, StoreError>> + Send {
        async { Ok(None) }
    }

    /// Gives the store a secret that this process has signed receipts with, and returns all secrets whose receipts are
    /// valid, the one to sign with first.
    ///
    /// A store may lose its secret with its data, and a process that starts then gets another one. This call restores
    /// it, or adds it: then processes from before and after the loss accept each other's receipts. Make it now and then
    /// while receipts are signed, and when a receipt is signed with an unknown secret.
    fn share_secret(
        &self,
        own: &[u8; SECRET_BYTES],
    ) -> impl Future<Output = Result<Vec<[u8; SECRET_BYTES]>, StoreError>> + Send {
        async {
            let mut secrets: Vec<_> = self.secret().await?.into_iter().collect();
            if !secrets.contains(own) {
                secrets.push(*own);
            }
            Ok(secrets)
        }
    }

    /// Whether calls leave this machine. A limiter puts a circuit breaker and a deny cache before such a store, unless
    /// its [`GuardOptions`](crate::guard::GuardOptions) say otherwise.
    fn is_remote(&self) -> bool {
        false
    }

    /// How long a limiter answers denials from its deny cache, if the settings of the store say so; zero for not at all.
    /// [`GuardOptions`](crate::guard::GuardOptions) take precedence.
    fn deny_cache_hold(&self) -> Option<Duration> {
        None
    }

    /// Whether it splits the keys of rules with [`shards`](crate::rule::RuleBuilder::shards). Such a store decides by
    /// [`Rule::of_shard`] and [says which shard](crate::decision::StateAnswer::of_shard) answered; a limiter refuses the costs that no
    /// shard admits.
    fn splits_keys(&self) -> bool {
        false
    }

    /// Statistics, if the store has them without a call.
    fn stats(&self) -> Option<Stats> {
        None
    }

    /// The clock by which callers in this process wait. The decisions of a shared store use the store's clock.
    fn wait_clock(&self) -> &dyn Clock {
        process_clock()
    }
}

/// A store in this process or on this machine. Its futures need no runtime, so a [`Limiter`](crate::Limiter) over it
/// has every verb as a blocking function too, which polls the future with [`Call::blocking`] on the caller's thread
/// and parks the thread while it is pending.
pub trait LocalStore: Store {
    /// [`Store::check`], blocking; it fails with [`CheckError::Store`] only. It returns the limiter's error type, so
    /// that the result is not copied: in memory a copy takes longer than the decision.
    fn check_sync<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, CheckError> {
        Ok(block_on(self.check(call.blocking(), admission))?)
    }

    /// [`LocalStore::check_sync`] for one charge, of a cost between 1 and [`Rule::cost_max`]. If the store fails, the
    /// answer is that of `failed`: an answer that the caller has to look at would be copied.
    #[inline]
    fn check_charge_sync<'a>(
        &self,
        call: Call,
        charge: &Charge<'a>,
        failed: &impl Fn(StoreError) -> Result<Decision<'a>, CheckError>,
    ) -> Result<Decision<'a>, CheckError> {
        match self.check_sync(call, &Admission::of_checked(*charge)) {
            Err(CheckError::Store(error)) => failed(error),
            decided => decided,
        }
    }

    /// [`Store::check_batch`], blocking; every answer fails with [`CheckError::Store`] only.
    fn check_batch_sync<'a>(
        &self,
        call: Call,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Decision<'a>, CheckError>> {
        let decided = block_on(self.check_batch(call.blocking(), admissions));
        decided.into_iter().map(|decided| Ok(decided?)).collect()
    }
}
