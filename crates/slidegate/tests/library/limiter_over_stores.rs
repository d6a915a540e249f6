//! The limiter over several stores: the shared suite, and blocking and `_async` verbs compared.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::*;
use slidegate::rule::OnStoreError;
use slidegate::store::{BoxStore, MemoryStore, Store};
use slidegate::testing::{FailingStore, Rng, StoreFailure, block_on, limiter_suite};
use slidegate::time::{Clock, ManualClock, SystemClock, Timer};
use slidegate::{Admission, Algorithm, Charge, CheckError, Decision, Limiter, Receipt, Rule};

/// A shared manual clock. As a timer it moves to the end of a sleep at the second poll: a task that is woken before
/// does not see time pass.
#[derive(Clone)]
struct SharedClock(Arc<ManualClock>);

impl SharedClock {
    fn new() -> Self {
        Self(Arc::new(ManualClock::at_us(BOUNDARY_US + SECOND_US)))
    }
}

impl Clock for SharedClock {
    fn now_us(&self) -> u64 {
        self.0.now_us()
    }

    fn park_until_us(&self, until_us: u64) {
        self.0.set_us(until_us);
    }
}

impl Timer for SharedClock {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        let duration_us = u64::try_from(duration.as_micros()).unwrap();
        Sleep { clock: self.clone(), end_us: self.now_us() + duration_us, polled: false }
    }
}

struct Sleep {
    clock: SharedClock,
    end_us: u64,
    polled: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.polled, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.clock.0.set_us(self.end_us);
        Poll::Ready(())
    }
}

fn assert_passes<S: Store>(fresh: impl AsyncFn() -> S, timer: &impl Timer) {
    block_on(limiter_suite::run(&fresh, timer)).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn the_suite_passes_over_memory() {
    let clock = SharedClock::new();
    assert_passes(async || MemoryStore::with_clock(clock.clone()), &clock);
}

#[test]
fn the_suite_passes_over_a_boxed_store() {
    let clock = SharedClock::new();
    assert_passes(async || BoxStore::new(MemoryStore::with_clock(clock.clone())), &clock);
}

/// A timer that polls the clock: the suite sleeps for some milliseconds at most.
struct PollingTimer(SystemClock);

impl Timer for PollingTimer {
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        let end_us = self.0.now_us() + u64::try_from(duration.as_micros()).unwrap();
        poll_fn(move |context| {
            if self.0.now_us() >= end_us {
                return Poll::Ready(());
            }
            std::thread::yield_now();
            context.waker().wake_by_ref();
            Poll::Pending
        })
    }
}

/// As with a shared store, time passes between any two calls.
#[test]
fn the_suite_passes_on_a_clock_that_runs() {
    assert_passes(async || MemoryStore::new(), &PollingTimer(SystemClock::new()));
}

/// The suite must reject a store that loses all its answers.
#[test]
fn the_suite_rejects_a_store_that_fails() {
    let clock = SharedClock::new();
    let fresh = async || {
        let store = FailingStore::new(MemoryStore::with_clock(clock.clone()));
        store.fail(StoreFailure::Ambiguous);
        store
    };
    let broken = block_on(limiter_suite::run(&fresh, &clock)).unwrap_err();
    for promise in [
        "checks_charge_and_deny",
        "refunds_settlements_credits_and_resets_give_back",
        "refunds_wake_the_first",
    ] {
        assert!(broken.contains(&format!("{promise}: ")), "{promise} holds; broken:\n{broken}");
    }
    assert!(!broken.contains("argument_errors_are_not_outages"), "{broken}");
}

/// The plain verbs have the same policy.
#[test]
fn the_policy_answers_plain_verbs_too() {
    let (denying, clock) = (rule("deny", &["5/10s"], Algorithm::SlidingLog), SharedClock::new());
    let allowing = Rule::builder("allow").limit("5/10s".parse().unwrap()).on_store_error(OnStoreError::Allow);
    let allowing = allowing.build().unwrap();
    let limiter = Limiter::new(FailingStore::new(MemoryStore::with_clock(clock)));
    for failure in StoreFailure::ALL {
        limiter.store().fail(failure);
        let every_way = |rule| {
            let (charge, request) = (Charge::new(rule, key("alice"), 1), admission(&[(rule, "alice", 1)]));
            let mut answers = limiter.check_batch(&[request.clone(), request.clone()]);
            answers.extend([
                limiter.check(rule, "alice"),
                limiter.check_n(rule, "alice", 2),
                limiter.check_all(&[charge]),
                limiter.decide(&request),
                limiter.try_decide(&request).unwrap(),
                limiter.peek(rule, "alice"),
                limiter.peek_all(&[charge]),
                limiter.acquire(rule, "alice", Duration::from_secs(60)),
                limiter.acquire_all(&[charge], Duration::from_secs(60)),
            ]);
            answers
        };
        let before = limiter.stats();
        for answer in every_way(&denying) {
            assert_eq!(answer.unwrap_err(), CheckError::Store(failure.error()));
        }
        for answer in every_way(&allowing) {
            let decision = answer.unwrap();
            assert!(decision.allowed() && decision.receipt().is_none(), "{decision:?}");
            assert_eq!((decision.used(), decision.store_error()), (None, Some(&failure.error())));
        }
        let after = limiter.stats();
        assert_eq!(after.store_failures - before.store_failures, 22, "{failure:?}");
        assert_eq!(after.degraded - before.degraded, 11, "{failure:?}");
        limiter.store().recover();
        assert!(!limiter.peek(&denying, "alice").unwrap().degraded());
    }
}

/// The deadline of an acquisition passes while the store is down and others wait in front of it. `allow` admits it.
#[test]
fn an_outage_at_the_deadline_of_a_waiter_is_answered_by_the_policy() {
    let (store, clock) = memory();
    let limiter = Limiter::new(FailingStore::new(store));
    let api = rule("api", &["5/10s"], Algorithm::SlidingLog);
    let lenient = limiter.with_outage_policy(OnStoreError::Allow);
    for (view, passes) in [(&lenient, true), (&limiter.with_outage_policy(OnStoreError::Deny), false)] {
        limiter.check_n(&api, "alice", 5).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut first = pin!(view.acquire_async(&clock, &api, "alice", Duration::from_secs(60)));
        assert!(first.as_mut().poll(&mut context).is_pending());
        let mut second = pin!(view.acquire_async(&clock, &api, "alice", Duration::from_secs(1)));
        assert!(second.as_mut().poll(&mut context).is_pending());
        assert_eq!(limiter.stats().waiting, 2);

        limiter.store().fail(StoreFailure::Unavailable);
        let Poll::Ready(answer) = second.as_mut().poll(&mut context) else { panic!("its deadline has come") };
        limiter.store().recover();
        limiter.reset(&api, "alice").unwrap();
        if passes {
            let decision = answer.unwrap();
            assert!(decision.allowed() && decision.degraded(), "{decision:?}");
        } else {
            assert_eq!(answer.unwrap_err(), CheckError::Store(StoreFailure::Unavailable.error()));
        }
    }
    assert_eq!((limiter.stats().store_failures, limiter.stats().degraded), (2, 1));
}

/// Every `_async` verb can be spawned as a task, over any store: this compiles.
#[test]
fn the_futures_of_all_verbs_are_send() {
    fn spawned(future: impl Future<Output = ()> + Send + 'static) {
        drop(future);
    }
    fn over<S: Store + 'static>(store: S) {
        let (limiter, rule) = (Arc::new(Limiter::new(store)), Arc::new(Rule::new("api", "5/10s").unwrap()));
        spawned(async move {
            let (timer, wait, name) = (SharedClock::new(), Duration::ZERO, String::from("alice"));
            let charges = [rule.charge(&name, 1).unwrap(), rule.charge("bob", 1).unwrap()];
            let admission = Admission::new(&charges).unwrap();
            let decision = limiter.check_async(&rule, &name).await.unwrap().into_owned();
            let _denied = limiter.check_n_async(&rule, &name, 2).await;
            let _all = limiter.check_all_async(&charges).await;
            let _decided = limiter.with_outage_policy(OnStoreError::Allow).decide_async(&admission).await;
            let _batch = limiter.check_batch_async(&[admission.clone(), admission]).await;
            let _peeked = limiter.with_deadline(wait).peek_async(&rule, &name).await;
            let _all = limiter.peek_all_async(&charges).await;
            let _acquired = limiter.acquire_async(&timer, &rule, &name, wait).await;
            let _all = limiter.acquire_all_async(&timer, &charges, wait).await;
            if let Some(receipt) = decision.receipt() {
                let _refunded = limiter.refund_async(&receipt).await;
                let _settled = limiter.settle_async(&receipt, 1).await;
            }
            let _credited = limiter.credit_async(&rule, &name, 1).await;
            let _reset = limiter.reset_async(&rule, &name).await;
            let _usages = limiter.inspect_async(&rule, &name).await;
            let _changed = limiter.change_async(&rule).await;
        });
    }
    over(MemoryStore::new());
    over(BoxStore::new(FailingStore::new(MemoryStore::new())));
}

/// A verb's answer without the store's id, so that answers of two stores can be compared.
#[derive(Debug, PartialEq)]
enum ComparableAnswer {
    Decision { numbers: String, receipt: Option<String> },
    Other(String),
}

fn comparable_decision(decision: &Result<Decision<'_>, CheckError>) -> ComparableAnswer {
    match decision {
        Ok(decision) => ComparableAnswer::Decision {
            numbers: format!("{:?}", (decision.binding(), decision.verdicts().collect::<Vec<_>>())),
            receipt: decision.receipt().map(|receipt| format!("{:?} {:?}", receipt.id(), receipt.charges())),
        },
        Err(error) => ComparableAnswer::Other(format!("{error:?}")),
    }
}

fn comparable_debug(answer: &impl std::fmt::Debug) -> ComparableAnswer {
    ComparableAnswer::Other(format!("{answer:?}"))
}

type Memory = MemoryStore<SharedClock>;

fn memory() -> (Memory, SharedClock) {
    let clock = SharedClock::new();
    (MemoryStore::with_clock(clock.clone()).with_seed(1), clock)
}

/// One step of a trace.
enum Step<'a> {
    Check(&'a Rule, &'a str),
    CheckN(&'a Rule, &'a str, u64),
    CheckAll(Vec<Charge<'a>>),
    Decide(Admission<'a>),
    Batch(Vec<Admission<'a>>),
    Peek(&'a Rule, &'a str),
    PeekAll(Vec<Charge<'a>>),
    Refund(usize),
    Settle(usize, u64),
    Credit(&'a Rule, &'a str, u64),
    Reset(&'a Rule, &'a str),
    Inspect(&'a Rule, &'a str),
    Change(&'a Rule),
    Acquire(&'a Rule, &'a str, Duration),
    AcquireAll(Vec<Charge<'a>>, Duration),
}

fn drawn<'a>(rng: &mut Rng, rules: &'a [Rule]) -> Step<'a> {
    const NAMES: [&str; 3] = ["alice", "bob", "carol"];
    // Sometimes an invalid key.
    let (rule, name) = (rng.pick(rules), if rng.one_in(20) { "" } else { *rng.pick(&NAMES) });
    let charge = |rng: &mut Rng| {
        let (rule, name) = (rng.pick(rules), *rng.pick(&NAMES));
        Charge::new(rule, key(name), rng.below(7))
    };
    let charges = |rng: &mut Rng| (0..rng.between(1, 3)).map(|_| charge(rng)).collect::<Vec<_>>();
    let admission = |rng: &mut Rng| loop {
        let (charges, unlimited) = (charges(rng), rng.below(4));
        if let Ok(admission) = Admission::partly_unlimited(&charges, |index| index as u64 == unlimited) {
            return admission;
        }
    };
    let wait = Duration::from_millis(rng.below(4_000));
    match rng.below(15) {
        0 => Step::Check(rule, name),
        1 => Step::CheckN(rule, name, rng.below(8)),
        2 => Step::CheckAll(charges(rng)),
        3 => Step::Decide(admission(rng)),
        4 => Step::Batch((0..rng.below(4)).map(|_| admission(rng)).collect()),
        5 => Step::Peek(rule, name),
        6 => Step::PeekAll(charges(rng)),
        7 => Step::Refund(usize::try_from(rng.draw() >> 33).unwrap()),
        8 => Step::Settle(usize::try_from(rng.draw() >> 33).unwrap(), rng.below(9)),
        9 => Step::Credit(rule, name, rng.below(4)),
        10 if rng.one_in(4) => Step::Reset(rule, name),
        11 if rng.one_in(4) => Step::Change(rule),
        12 => Step::Acquire(rule, name, wait),
        13 => Step::AcquireAll(charges(rng), wait),
        _ => Step::Inspect(rule, name),
    }
}

/// The answers of a step, and their receipts.
type StepAnswers = (Vec<ComparableAnswer>, Vec<Receipt>);

fn decided(decisions: &[Result<Decision<'_>, CheckError>]) -> StepAnswers {
    let receipts = decisions.iter().flatten().filter_map(Decision::receipt).collect();
    (decisions.iter().map(comparable_decision).collect(), receipts)
}

fn by_plain_verb(limiter: &Limiter<Memory>, step: &Step<'_>, receipts: &[Receipt]) -> StepAnswers {
    let receipt = |number: usize| receipts.get(number % receipts.len().max(1));
    let applied = match step {
        Step::Check(rule, name) => return decided(&[limiter.check(rule, name)]),
        Step::CheckN(rule, name, cost) => return decided(&[limiter.check_n(rule, name, *cost)]),
        Step::CheckAll(charges) => return decided(&[limiter.check_all(charges)]),
        Step::Decide(admission) => return decided(&[limiter.decide(admission)]),
        Step::Batch(admissions) => return decided(&limiter.check_batch(admissions)),
        Step::Peek(rule, name) => return decided(&[limiter.peek(rule, name)]),
        Step::PeekAll(charges) => return decided(&[limiter.peek_all(charges)]),
        Step::Acquire(rule, name, wait) => return decided(&[limiter.acquire(rule, name, *wait)]),
        Step::AcquireAll(charges, wait) => return decided(&[limiter.acquire_all(charges, *wait)]),
        Step::Refund(number) => comparable_debug(&receipt(*number).map(|receipt| limiter.refund(receipt))),
        Step::Settle(number, actual) => {
            comparable_debug(&receipt(*number).map(|receipt| limiter.settle(receipt, *actual)))
        }
        Step::Credit(rule, name, units) => comparable_debug(&limiter.credit(rule, name, *units)),
        Step::Reset(rule, name) => comparable_debug(&limiter.reset(rule, name)),
        Step::Inspect(rule, name) => comparable_debug(&limiter.inspect(rule, name)),
        Step::Change(rule) => comparable_debug(&limiter.change(rule)),
    };
    (vec![applied], Vec::new())
}

async fn by_async_verb<S: Store>(
    limiter: &Limiter<S>,
    timer: &SharedClock,
    step: &Step<'_>,
    receipts: &[Receipt],
) -> StepAnswers {
    let receipt = |number: usize| receipts.get(number % receipts.len().max(1));
    let applied = match step {
        Step::Check(rule, name) => return decided(&[limiter.check_async(rule, name).await]),
        Step::CheckN(rule, name, cost) => return decided(&[limiter.check_n_async(rule, name, *cost).await]),
        Step::CheckAll(charges) => return decided(&[limiter.check_all_async(charges).await]),
        Step::Decide(admission) => return decided(&[limiter.decide_async(admission).await]),
        Step::Batch(admissions) => return decided(&limiter.check_batch_async(admissions).await),
        Step::Peek(rule, name) => return decided(&[limiter.peek_async(rule, name).await]),
        Step::PeekAll(charges) => return decided(&[limiter.peek_all_async(charges).await]),
        Step::Acquire(rule, name, wait) => {
            return decided(&[limiter.acquire_async(timer, rule, name, *wait).await]);
        }
        Step::AcquireAll(charges, wait) => {
            return decided(&[limiter.acquire_all_async(timer, charges, *wait).await]);
        }
        Step::Refund(number) => match receipt(*number) {
            Some(receipt) => comparable_debug(&Some(limiter.refund_async(receipt).await)),
            None => comparable_debug(&None::<()>),
        },
        Step::Settle(number, actual) => match receipt(*number) {
            Some(receipt) => comparable_debug(&Some(limiter.settle_async(receipt, *actual).await)),
            None => comparable_debug(&None::<()>),
        },
        Step::Credit(rule, name, units) => comparable_debug(&limiter.credit_async(rule, name, *units).await),
        Step::Reset(rule, name) => comparable_debug(&limiter.reset_async(rule, name).await),
        Step::Inspect(rule, name) => comparable_debug(&limiter.inspect_async(rule, name).await),
        Step::Change(rule) => comparable_debug(&limiter.change_async(rule).await),
    };
    (vec![applied], Vec::new())
}

/// The same trace with blocking verbs, with `_async` verbs, and over a boxed store.
#[test]
fn plain_and_async_verbs_answer_the_same() {
    for algorithm in every_algorithm() {
        let rules = [
            rule("one", &["6/4s"], algorithm),
            rule("two", &["5/1s", "9/10s"], algorithm),
            rule("three", &["7/3s"], Algorithm::Gcra),
        ];
        let mut rng = Rng::new(11);
        let ((plain, plain_clock), (futures, clock), (boxed, boxed_clock)) = (memory(), memory(), memory());
        let (plain, futures, boxed) =
            (Limiter::new(plain), Limiter::new(futures), Limiter::new(BoxStore::new(boxed)));
        let mut receipts: [Vec<Receipt>; 3] = Default::default();
        for number in 0..1_000 {
            let (step, pause) = (drawn(&mut rng, &rules), Duration::from_micros(rng.below(400_000)));
            for clock in [&plain_clock, &clock, &boxed_clock] {
                clock.0.advance(pause);
            }
            let answers = [
                by_plain_verb(&plain, &step, &receipts[0]),
                block_on(by_async_verb(&futures, &clock, &step, &receipts[1])),
                block_on(by_async_verb(&boxed, &boxed_clock, &step, &receipts[2])),
            ];
            assert_eq!(answers[0].0, answers[1].0, "{algorithm}, step {number}");
            assert_eq!(answers[0].0, answers[2].0, "{algorithm}, step {number}, boxed");
            for (known, (_, new)) in receipts.iter_mut().zip(answers) {
                known.extend(new);
            }
            let times = [&plain_clock, &clock, &boxed_clock].map(Clock::now_us);
            assert!(times.iter().all(|time| *time == times[0]), "{algorithm}, step {number}: {times:?}");
        }
        assert!(receipts[0].len() > 100, "{algorithm}: {} admissions", receipts[0].len());
    }
}
