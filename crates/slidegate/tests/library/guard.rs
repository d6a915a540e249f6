//! The guard around a store: circuit breaker, deny cache, deadline, and local limits that are kept warm.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slidegate::guard::{GuardEvent, GuardOptions};
use slidegate::rule::OnStoreError;
use slidegate::store::{BoxStore, Call, LimitUsage, MemoryStore, Store, Update};
use slidegate::testing::{FailingStore, Rng, StoreFailure, block_on};
use slidegate::time::{Clock, ManualClock};
use slidegate::{Admission, Applied, CheckError, Decision, Key, Limiter, Rule, StoreError, UpdateError};

use crate::common::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

type Failing = Limiter<FailingStore<MemoryStore<Arc<ManualClock>>>>;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_us(1_745_000_145_000_000))
}

/// A limiter over a store that fails on demand, with all parts of the guard.
fn guarded(clock: &Arc<ManualClock>, options: GuardOptions) -> Failing {
    let store = FailingStore::new(MemoryStore::with_clock(Arc::clone(clock)));
    Limiter::guarded(store, options.breaker(true))
}

fn rule(rate: &str, policy: OnStoreError) -> Rule {
    Rule::builder("api").limit(rate.parse().unwrap()).on_store_error(policy).build().unwrap()
}

fn local(share: &str) -> OnStoreError {
    OnStoreError::Local(share.parse().unwrap())
}

fn check<'a>(limiter: &Failing, rule: &'a Rule) -> Result<Decision<'a>, CheckError> {
    block_on(limiter.check_async(rule, "alice"))
}

/// Row 21: five calls find out that the store is gone; after them the policy answers at once.
#[test]
fn an_open_breaker_answers_without_the_store_and_closes_when_it_is_back() {
    let clock = clock();
    let told = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&told);
    let limiter = guarded(
        &clock,
        GuardOptions::default().on_event(move |event| {
            notes.lock().unwrap().push(match event {
                GuardEvent::Opened { .. } => "opened",
                GuardEvent::Closed => "closed",
                GuardEvent::Degraded { allowed: true, .. } => "allowed",
                GuardEvent::Degraded { policy: OnStoreError::Deny, .. } => "denied",
                _ => "other",
            });
        }),
    );
    let (allow, deny) = (rule("9/1m", OnStoreError::Allow), rule("9/1m", OnStoreError::Deny));
    limiter.store().fail(StoreFailure::Ambiguous);
    for _ in 0..5 {
        let degraded = check(&limiter, &allow).unwrap();
        assert!(degraded.store_error().unwrap().maybe_charged());
    }
    let asked = limiter.store().calls();
    for _ in 0..1_000 {
        let degraded = check(&limiter, &allow).unwrap();
        assert!(degraded.allowed() && !degraded.store_error().unwrap().maybe_charged());
        let Err(CheckError::Store(error)) = check(&limiter, &deny) else { panic!("the store is gone") };
        assert!(error.to_string().contains("circuit breaker is open"), "{error}");
    }
    assert_eq!(limiter.store().calls(), asked, "nothing was asked");
    assert!(limiter.stats().breaker_is_open);

    // Every verb fails fast, and a batch too.
    let charge = allow.charge("alice", 1).unwrap();
    let admission = Admission::of_one(charge).unwrap();
    assert!(limiter.try_decide(&admission).unwrap().unwrap().degraded());
    let batch = block_on(limiter.check_batch_async(&[admission.clone(), admission]));
    assert!(batch.iter().all(|decided| decided.as_ref().unwrap().degraded()));
    assert!(block_on(limiter.peek_async(&allow, "alice")).unwrap().degraded());
    assert!(matches!(block_on(limiter.reset_async(&allow, "alice")), Err(UpdateError::Store(_))));
    assert!(block_on(limiter.inspect_async(&allow, "alice")).is_err());
    assert_eq!(limiter.store().calls(), asked);

    // A probe after each pause, and the first answer closes it.
    clock.advance(100 * MS);
    assert!(check(&limiter, &allow).unwrap().degraded());
    assert!(check(&limiter, &allow).unwrap().degraded());
    assert_eq!(limiter.store().calls(), asked + 1, "one probe");
    limiter.store().recover();
    clock.advance(SECOND);
    let decision = check(&limiter, &allow).unwrap();
    assert!(!decision.degraded());
    // Five whose answers were lost, the probe, and this one.
    assert_eq!(decision.used(), Some(7));
    assert!(!limiter.stats().breaker_is_open);
    let told = told.lock().unwrap();
    let of = |kind| told.iter().filter(|event| **event == kind).count();
    assert_eq!((of("opened"), of("closed"), of("denied"), of("other")), (1, 1, 1_000, 0));
    assert_eq!(u64::try_from(of("allowed")).unwrap(), limiter.stats().degraded);
}

/// A store that flaps for a minute: it is asked again within a second of every recovery.
#[test]
fn a_flapping_store_is_used_within_a_second_of_each_recovery() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default());
    let api = rule("1000000/1h", OnStoreError::Allow);
    for flap in 0..20 {
        limiter.store().fail(StoreFailure::Unavailable);
        for _ in 0..100 * (1 + flap % 7) {
            assert!(check(&limiter, &api).unwrap().degraded());
            clock.advance(10 * MS);
        }
        limiter.store().recover();
        let mut waited = Duration::ZERO;
        while check(&limiter, &api).unwrap().degraded() {
            clock.advance(10 * MS);
            waited += 10 * MS;
        }
        assert!(waited <= SECOND, "{waited:?}");
    }
    assert_eq!(limiter.stats().waiting, 0);
}

/// The callers' mistakes are no outages.
#[test]
fn mistakes_of_callers_neither_open_it_nor_are_answered_by_it() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default());
    let api = rule("5/1m", OnStoreError::Allow);
    for _ in 0..20 {
        assert!(block_on(limiter.check_n_async(&api, "alice", 6)).is_err());
        assert!(block_on(limiter.check_async(&api, "")).is_err());
    }
    limiter.store().fail(StoreFailure::Unavailable);
    for _ in 0..20 {
        let _opens = check(&limiter, &api);
        assert!(matches!(block_on(limiter.check_n_async(&api, "alice", 6)), Err(CheckError::Charge(_))));
        assert!(matches!(block_on(limiter.check_async(&api, "")), Err(CheckError::Key(_))));
    }
    assert!(limiter.stats().breaker_is_open);
}

/// Row 4: a run with the cache admits what one without it admits, whatever is given back, and announces no wait that is
/// too long.
#[test]
fn row_04_the_deny_cache_changes_no_verdict() {
    for (seed, algorithm) in every_algorithm().into_iter().enumerate() {
        let clock = clock();
        let rates = ["4/10s", "7/1m"];
        let rules = ["a", "b"].map(|name| {
            let rule = rates.iter().fold(Rule::builder(name), |rule, rate| rule.limit(rate.parse().unwrap()));
            rule.algorithm(algorithm).build().unwrap()
        });
        let plain = guarded(&clock, GuardOptions::default());
        let cached = guarded(&clock, GuardOptions::default().deny_cache(SECOND));
        let mut receipts = Vec::new();
        let mut rng = Rng::new(4_000 + seed as u64);
        for step in 0..3_000 {
            clock.advance(Duration::from_micros(rng.below(400_000)));
            let key = ["alice", "bob"][usize::try_from(rng.below(2)).unwrap()];
            let rule = &rules[usize::try_from(rng.below(2)).unwrap()];
            match rng.below(40) {
                0 => {
                    for limiter in [&plain, &cached] {
                        block_on(limiter.reset_async(rule, key)).unwrap();
                    }
                }
                1 => {
                    for limiter in [&plain, &cached] {
                        block_on(limiter.credit_async(rule, key, 2)).unwrap();
                    }
                }
                2 | 3 => {
                    if let Some((first, second)) = receipts.pop() {
                        assert_eq!(
                            block_on(plain.refund_async(&first)),
                            block_on(cached.refund_async(&second)),
                            "{algorithm} step {step}"
                        );
                    }
                }
                _ => {
                    let cost = 1 + rng.below(2);
                    let mut charges = vec![rule.charge(key, cost).unwrap()];
                    if rng.below(4) == 0 {
                        charges.push(rules[0].charge("carol", 1).unwrap());
                    }
                    let first = block_on(plain.check_all_async(&charges)).unwrap();
                    let second = block_on(cached.check_all_async(&charges)).unwrap();
                    assert_eq!(first.allowed(), second.allowed(), "{algorithm} step {step}");
                    // As of the cached denial: units that were spent since then make the true wait longer.
                    assert!(second.retry_after() <= first.retry_after(), "{algorithm} step {step}");
                    assert_eq!(first.is_charged(), second.is_charged(), "{algorithm} step {step}");
                    receipts.extend(first.receipt().zip(second.receipt()));
                }
            }
        }
        assert!(cached.stats().cached_denials > 100, "{algorithm}: {:?}", cached.stats());
        assert_eq!(plain.stats().cached_denials, 0);
        assert!(cached.store().calls() < plain.store().calls());
    }
}

/// Other costs have other waits, so they ask the store.
#[test]
fn only_the_same_cost_is_answered_from_the_cache() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default().deny_cache(SECOND));
    let api = rule("5/1m", OnStoreError::Deny);
    assert!(block_on(limiter.check_n_async(&api, "alice", 4)).unwrap().allowed());
    let denied = block_on(limiter.check_n_async(&api, "alice", 3)).unwrap();
    clock.advance(300 * MS);
    let again = block_on(limiter.check_n_async(&api, "alice", 3)).unwrap();
    assert_eq!(limiter.stats().cached_denials, 1);
    assert_eq!(again.retry_after(), denied.retry_after().map(|wait| wait.saturating_sub(300 * MS)));
    assert_eq!(again.reset_after(), denied.reset_after().map(|wait| wait.saturating_sub(300 * MS)));
    assert_eq!((again.used(), again.remaining()), (Some(4), Some(1)));
    assert!(block_on(limiter.check_n_async(&api, "alice", 1)).unwrap().allowed());
    assert!(!block_on(limiter.check_n_async(&api, "alice", 2)).unwrap().allowed());
    assert!(!block_on(limiter.check_n_async(&api, "bob", 6)).is_ok_and(|decision| decision.allowed()));
    assert_eq!(limiter.stats().cached_denials, 1);
    // A peek and a call at a given time ask the store: they want to know.
    assert!(!block_on(limiter.peek_all_async(&[api.charge("alice", 3).unwrap()])).unwrap().allowed());
    let now_us = clock.now_us();
    assert!(!block_on(limiter.at_us(now_us).check_n_async(&api, "alice", 3)).unwrap().allowed());
    assert_eq!(limiter.stats().cached_denials, 1);
}

/// What another process gives back is seen after the hold.
#[test]
fn units_given_back_elsewhere_are_seen_after_the_hold() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default().deny_cache(500 * MS));
    let api = rule("1/1m", OnStoreError::Deny);
    assert!(check(&limiter, &api).unwrap().allowed());
    assert!(!check(&limiter, &api).unwrap().allowed());
    // Not through this limiter, as another process would.
    limiter.store().inner().reset(clock.now_us(), &api, Key::new("alice").unwrap());
    assert!(!check(&limiter, &api).unwrap().allowed());
    clock.advance(499 * MS);
    assert!(!check(&limiter, &api).unwrap().allowed());
    clock.advance(MS);
    assert!(check(&limiter, &api).unwrap().allowed());
}

/// A denial whose answer arrives after a reset must not be remembered.
#[test]
fn a_denial_that_was_overtaken_by_a_reset_is_not_kept() {
    let clock = clock();
    let limiter =
        Limiter::guarded(PausingStore::new(&clock, None), GuardOptions::default().deny_cache(SECOND));
    let api = rule("1/1m", OnStoreError::Deny);
    assert!(block_on(limiter.check_async(&api, "alice")).unwrap().allowed());
    let mut context = Context::from_waker(Waker::noop());
    limiter.store().pauses.store(true, Ordering::SeqCst);
    let mut overtaken = pin!(limiter.check_async(&api, "alice"));
    assert!(overtaken.as_mut().poll(&mut context).is_pending(), "decided, and its answer is on the way");
    assert!(block_on(limiter.reset_async(&api, "alice")).unwrap().applied);
    let Poll::Ready(Ok(denied)) = overtaken.as_mut().poll(&mut context) else { panic!("it has arrived") };
    assert!(!denied.allowed());
    assert!(block_on(limiter.check_async(&api, "alice")).unwrap().allowed());
}

/// Decides when it is polled first, and answers at the next poll if it is to pause.
struct PausingStore {
    store: MemoryStore<Arc<ManualClock>>,
    pauses: AtomicBool,
    /// Its setting of the deny cache.
    hold: Option<Duration>,
}

impl PausingStore {
    fn new(clock: &Arc<ManualClock>, hold: Option<Duration>) -> Self {
        Self { store: MemoryStore::with_clock(Arc::clone(clock)), pauses: AtomicBool::new(false), hold }
    }
}

/// The setting of a store counts, also of an erased one, unless the options of the limiter say something else.
#[test]
fn a_store_may_say_how_long_denials_are_held() {
    let zero = Duration::ZERO;
    for (of_store, of_options, cached_denials) in [
        (None, None, 0),
        (Some(SECOND), None, 1),
        (Some(zero), None, 0),
        (Some(SECOND), Some(zero), 0),
        (Some(zero), Some(SECOND), 1),
    ] {
        let options = of_options.into_iter().fold(GuardOptions::default(), GuardOptions::deny_cache);
        let store = BoxStore::new(PausingStore::new(&clock(), of_store));
        let (limiter, api) = (Limiter::guarded(store, options), rule("1/1m", OnStoreError::Deny));
        for allowed in [true, false, false] {
            assert_eq!(block_on(limiter.check_async(&api, "alice")).unwrap().allowed(), allowed);
        }
        assert_eq!(limiter.stats().cached_denials, cached_denials, "{of_store:?} {of_options:?}");
    }
}

impl Store for PausingStore {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let decided = Store::check(&self.store, call, admission).await;
        poll_fn(|_| if self.pauses.swap(false, Ordering::SeqCst) { Poll::Pending } else { Poll::Ready(()) })
            .await;
        decided
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Store::peek(&self.store, call, admission).await
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        self.store.update(call, update).await
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Store::inspect(&self.store, call, rule, key).await
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        Store::change(&self.store, call, rule).await
    }

    fn deny_cache_hold(&self) -> Option<Duration> {
        self.hold
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.store.wait_clock()
    }
}

/// Row 21: the local limit is warm when the outage begins, and enforces its share of the limit.
#[test]
fn row_21_local_limits_count_what_the_store_has_admitted() {
    for algorithm in every_algorithm() {
        let clock = clock();
        let limiter = guarded(&clock, GuardOptions::default());
        let api = Rule::builder("api").limit("100/1m".parse().unwrap()).algorithm(algorithm);
        let api = api.on_store_error(local("0.25")).build().unwrap();
        for _ in 0..20 {
            assert!(check(&limiter, &api).unwrap().allowed(), "{algorithm}");
        }
        limiter.store().fail(StoreFailure::Unavailable);
        let admitted = (0..50).filter(|_| check(&limiter, &api).unwrap().allowed()).count();
        assert_eq!(admitted, 5, "{algorithm}: 20 of 25 were used");
        let denied = check(&limiter, &api).unwrap();
        assert_eq!((denied.limit(), denied.remaining()), (Some(25), Some(0)), "{algorithm}");

        // Its own wait is exact.
        let wait = denied.retry_after().unwrap();
        clock.advance(wait.saturating_sub(Duration::from_micros(1)));
        assert!(!check(&limiter, &api).unwrap().allowed(), "{algorithm}");
        clock.advance(Duration::from_micros(1));
        assert!(check(&limiter, &api).unwrap().allowed(), "{algorithm}");
    }
}

/// More than the share was admitted by the store: nothing passes until it has left the window.
#[test]
fn admissions_above_the_share_count_until_they_leave_the_window() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default());
    let api = rule("100/1m", local("0.1"));
    for _ in 0..60 {
        assert!(check(&limiter, &api).unwrap().allowed());
        clock.advance(SECOND / 2);
    }
    limiter.store().fail(StoreFailure::Unavailable);
    // 60 in the last 30 s; the first ten of the share are free again when 51 have left.
    let denied = check(&limiter, &api).unwrap();
    assert!(!denied.allowed());
    assert_eq!(denied.retry_after(), Some(Duration::from_micros(30 * SECOND_US + 25 * SECOND_US)));
}

/// The store's failures of one policy never touch the limits of another process or rule.
#[test]
fn the_policy_of_a_call_is_kept_warm_too() {
    let clock = clock();
    let limiter = guarded(&clock, GuardOptions::default());
    let api = rule("10/1m", OnStoreError::Deny);
    let view = limiter.with_outage_policy(local("0.5"));
    for _ in 0..3 {
        assert!(block_on(view.check_async(&api, "alice")).unwrap().allowed());
    }
    limiter.store().fail(StoreFailure::Refused);
    let admitted = (0..9).filter(|_| block_on(view.check_async(&api, "alice")).unwrap().allowed()).count();
    assert_eq!(admitted, 2);
    assert!(check(&limiter, &api).is_err(), "the rule's own policy denies");
}

/// Row 21: a store that never answers is given up at the deadline, by a timer of any kind.
#[test]
fn a_stalled_store_is_given_up_at_the_deadline() {
    struct Stalled;
    impl Store for Stalled {
        async fn check<'a>(&self, _: Call, _: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
            pending().await
        }
        async fn peek<'a>(&self, _: Call, _: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
            pending().await
        }
        async fn update(&self, _: Call, _: Update<'_>) -> Result<Applied, UpdateError> {
            pending().await
        }
        async fn inspect(&self, _: Call, _: &Rule, _: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
            pending().await
        }
        async fn change(&self, _: Call, _: &Rule) -> Result<(), StoreError> {
            pending().await
        }
    }
    let clock = clock();
    let limiter = Limiter::guarded(Stalled, GuardOptions::default().deadline(50 * MS, Arc::clone(&clock)));
    let api = rule("5/1m", OnStoreError::Allow);
    let mut context = Context::from_waker(Waker::noop());
    let view = limiter.with_deadline(10 * MS);
    for (by_view, deadline) in [(false, 50 * MS), (true, 10 * MS)] {
        let mut asked: Pin<Box<dyn Future<Output = _>>> = if by_view {
            Box::pin(view.check_async(&api, "alice"))
        } else {
            Box::pin(limiter.check_async(&api, "alice"))
        };
        assert!(asked.as_mut().poll(&mut context).is_pending());
        clock.advance(deadline.saturating_sub(Duration::from_micros(1)));
        assert!(asked.as_mut().poll(&mut context).is_pending());
        clock.advance(Duration::from_micros(1));
        let Poll::Ready(Ok(decision)) = asked.as_mut().poll(&mut context) else { panic!("{deadline:?}") };
        assert!(decision.allowed() && decision.store_error().unwrap().maybe_charged());
    }
}
