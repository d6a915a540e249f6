//! `acquire`: first come, first served, without a stampede, and without a trace when cancelled.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::*;
use crate::tasks::Tasks;
use slidegate::limiter::WAITERS_MAX;
use slidegate::store::{Call, LimitUsage, MemoryStore, Store, StoreError, Update, UpdateError};
use slidegate::testing::block_on;
use slidegate::time::{Clock, ManualClock};
use slidegate::{
    Admission, Algorithm, Applied, Charge, ChargeError, CheckError, Decision, Key, Limiter, Receipt, Rule,
};

const PATIENT: Duration = Duration::MAX;

fn limiter() -> Limiter<MemoryStore<ManualClock>> {
    Limiter::with_clock(ManualClock::at_us(BOUNDARY_US))
}

fn ask<'a>(rule: &'a Rule, name: &'a str, cost: u64) -> [Charge<'a>; 1] {
    [Charge::new(rule, key(name), cost)]
}

fn used(limiter: &Limiter<MemoryStore<ManualClock>>, rule: &Rule, name: &str) -> u64 {
    limiter.inspect(rule, name).unwrap()[0].used
}

#[test]
fn waiters_are_served_in_the_order_of_arrival() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let limiter = limiter();
        let mut tasks = Tasks::new(&limiter);
        for number in 0..20 {
            tasks.spawn(&ask(&rule, "alice", 1 + number % 5), PATIENT);
        }
        tasks.run_to_the_end();
        assert_eq!(tasks.finished(), (0..20).collect::<Vec<_>>(), "{algorithm}");
        assert!(tasks.outcomes().all(|outcome| outcome.receipt().is_some()), "{algorithm}");
    }
}

#[test]
fn a_later_acquisition_does_not_overtake_but_a_check_does() {
    let rule = rule("api", &["5/10s"], Algorithm::SlidingLog);
    let limiter = limiter();
    limiter.check_all(&ask(&rule, "alice", 4)).unwrap();
    let mut tasks = Tasks::new(&limiter);
    let large = tasks.spawn(&ask(&rule, "alice", 3), PATIENT);
    let small = tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
    let elsewhere = tasks.spawn(&ask(&rule, "bob", 1), PATIENT);
    tasks.run();
    assert_eq!(tasks.finished(), [elsewhere], "one unit is left, and the first waits for three");
    assert!(limiter.check_all(&ask(&rule, "alice", 1)).unwrap().allowed());
    tasks.run_to_the_end();
    assert_eq!(tasks.finished(), [elsewhere, large, small]);
}

/// `PyrateLimiter` woke all waiters at once, and all but one failed.
#[test]
fn row_20_no_stampede() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["1/1s"], algorithm);
        let limiter = limiter();
        limiter.check_all(&ask(&rule, "alice", 1)).unwrap();
        let mut tasks = Tasks::new(&limiter);
        for _ in 0..100 {
            tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
        }
        tasks.run();
        for admitted in 1..=100 {
            limiter.clock().set_us(limiter.clock().next_end_us().unwrap());
            let (wakes, polls) = tasks.run();
            assert_eq!(tasks.finished().len(), admitted, "{algorithm}: one unit, one admission");
            assert!(wakes <= 2 && polls <= 2, "{algorithm}: {wakes} wakes: it and the next");
        }
    }
}

/// A year of idle time does not accumulate units: uber-go/ratelimit stopped limiting.
#[test]
fn row_20_idle_for_a_year() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let limiter = limiter();
        let mut tasks = Tasks::new(&limiter);
        tasks.spawn(&ask(&rule, "alice", 5), PATIENT);
        tasks.run();
        limiter.clock().advance(Duration::from_secs(365 * 86_400));
        for _ in 0..20 {
            tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
        }
        tasks.run();
        assert_eq!(tasks.finished().len(), 6, "{algorithm}: the limit at once, and no more");
        let year_later = limiter.clock().now_us();
        tasks.run_to_the_end();
        assert_eq!(tasks.finished().len(), 21, "{algorithm}");
        assert!(limiter.clock().now_us() >= year_later + 30 * SECOND_US, "{algorithm}");
    }
}

#[test]
fn row_20_no_lock_is_held_while_waiting() {
    let rule = rule("api", &["1/10s"], Algorithm::SlidingLog);
    let limiter = limiter();
    let receipt = limiter.check_all(&ask(&rule, "alice", 1)).unwrap().receipt().unwrap();
    let mut tasks = Tasks::new(&limiter);
    tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
    tasks.run();
    assert!(!limiter.check_all(&ask(&rule, "alice", 1)).unwrap().allowed());
    assert!(limiter.check_all(&ask(&rule, "bob", 1)).unwrap().allowed());
    assert_eq!(limiter.refund(&receipt).unwrap().units, 1);
}

/// Any waiter may be cancelled at any time: only admitted requests are charged, and no later waiter is stuck.
#[test]
fn row_20_cancelled_waiters_leak_nothing() {
    let rule = rule("api", &["2/10s"], Algorithm::SlidingLog);
    for victim in 0..6 {
        for polls_before in 0..8 {
            let limiter = limiter();
            let mut tasks = Tasks::new(&limiter);
            let mut others = Vec::new();
            for number in 0..6 {
                let task = tasks.add(&ask(&rule, "alice", 1 + number as u64 % 2), PATIENT);
                if number == victim {
                    // Every poll but the first may come at any time.
                    for poll in 0..polls_before {
                        tasks.poll(task);
                        limiter.clock().advance(Duration::from_secs(poll % 3));
                    }
                } else {
                    others.push(task);
                }
            }
            tasks.run_all_but(victim);
            limiter.clock().advance(Duration::from_secs(3));
            tasks.cancel(victim);
            tasks.run_to_the_end();
            let mut admitted: Vec<_> = tasks.finished();
            admitted.retain(|task| *task != victim);
            admitted.sort_unstable();
            assert_eq!(admitted, others, "{victim} cancelled after {polls_before} polls");
            let now_us = limiter.clock().now_us();
            let charged: u64 = tasks.charged_since(now_us - 10 * SECOND_US);
            assert_eq!(used(&limiter, &rule, "alice"), charged, "{victim} after {polls_before} polls");
            assert_eq!(limiter.clock().sleepers(), 0);
        }
    }
}

#[test]
fn cancelling_the_first_waiter_lets_the_next_try_at_once() {
    let rule = rule("api", &["5/10s"], Algorithm::SlidingLog);
    let limiter = limiter();
    limiter.check_all(&ask(&rule, "alice", 3)).unwrap();
    let mut tasks = Tasks::new(&limiter);
    let large = tasks.spawn(&ask(&rule, "alice", 5), PATIENT);
    let small = tasks.spawn(&ask(&rule, "alice", 2), PATIENT);
    tasks.run();
    assert!(tasks.finished().is_empty());
    tasks.cancel(large);
    tasks.run();
    assert_eq!(tasks.finished(), [small]);
}

#[test]
fn an_acquisition_that_cannot_be_admitted_in_time_is_refused_at_once() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let limiter = limiter();
        limiter.check_all(&ask(&rule, "alice", 5)).unwrap();
        let denied = limiter.peek_all(&ask(&rule, "alice", 5)).unwrap();
        let mut tasks = Tasks::new(&limiter);
        let wait = denied.retry_after().unwrap();
        let short = wait.checked_sub(Duration::from_micros(1)).unwrap();
        let refused = tasks.spawn(&ask(&rule, "alice", 5), short);
        let admitted = tasks.spawn(&ask(&rule, "alice", 5), wait);
        tasks.run();
        assert_eq!(tasks.finished(), [refused], "{algorithm}");
        assert_eq!(tasks.outcome(refused), &denied, "{algorithm}");
        assert_eq!(tasks.outcome(refused).receipt(), None, "{algorithm}");
        assert_eq!(used(&limiter, &rule, "alice"), 5, "{algorithm}");
        limiter.clock().advance(wait);
        tasks.run();
        assert_eq!(tasks.finished(), [refused, admitted], "{algorithm}: exactly at its deadline");
        assert!(tasks.outcome(admitted).allowed(), "{algorithm}");
    }
}

#[test]
fn a_waiter_that_is_not_first_at_its_deadline_is_refused() {
    let [rule, other] = ["api", "other"].map(|name| rule(name, &["5/10s"], Algorithm::SlidingLog));
    let limiter = limiter();
    limiter.check_all(&ask(&rule, "alice", 4)).unwrap();
    let mut tasks = Tasks::new(&limiter);
    let large = tasks.spawn(&ask(&rule, "alice", 3), PATIENT);
    let two = tasks.spawn(&ask(&rule, "alice", 2), Duration::from_secs(1));
    let both = [ask(&rule, "alice", 1)[0], ask(&other, "alice", 1)[0]];
    let small = tasks.spawn(&both, Duration::from_secs(2));
    let now = tasks.spawn(&ask(&rule, "alice", 1), Duration::ZERO);
    tasks.run();
    assert_eq!(tasks.finished(), [now], "it would not wait at all");
    limiter.clock().advance(Duration::from_secs(1));
    tasks.run();
    limiter.clock().advance(Duration::from_secs(1));
    tasks.run();
    assert_eq!(tasks.finished(), [now, two, small]);

    let refused = &tasks.outcome(two);
    assert_eq!(
        (refused.allowed(), refused.retry_after()),
        (false, Some(Duration::from_secs(9))),
        "as a peek says"
    );
    let refused = &tasks.outcome(small);
    assert!(!refused.allowed(), "a unit is left, but it is not its turn");
    assert_eq!((refused.rule(), refused.remaining()), ("api", Some(1)));
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(8)), "when the first tries again");
    assert!(refused.verdicts().nth(1).unwrap().allowed(), "nobody waits for the other rule");
    assert_eq!(used(&limiter, &rule, "alice"), 4, "nobody was charged");
    tasks.run_to_the_end();
    assert_eq!(tasks.finished(), [now, two, small, large]);
}

type GiveBack = fn(&Limiter<MemoryStore<ManualClock>>, &Rule, &Receipt);

#[test]
fn units_given_back_wake_the_first_waiter() {
    let rule = rule("api", &["2/1h"], Algorithm::SlidingLog);
    let ways: [(&str, GiveBack); 5] = [
        ("refund", |limiter, _, receipt| assert!(limiter.refund(receipt).unwrap().applied)),
        ("settle", |limiter, _, receipt| assert!(limiter.settle(receipt, 1).unwrap().applied)),
        ("credit", |limiter, rule, _| assert!(limiter.credit(rule, "alice", 1).unwrap().applied)),
        ("reset", |limiter, rule, _| assert!(limiter.reset(rule, "alice").unwrap().applied)),
        ("change", |limiter, rule, _| {
            limiter.change(&rule.with_rates(&["9/1h".parse().unwrap()]).unwrap()).unwrap();
        }),
    ];
    for (name, give_back) in ways {
        let limiter = limiter();
        let receipt = limiter.check_all(&ask(&rule, "alice", 2)).unwrap().receipt().unwrap();
        let mut tasks = Tasks::new(&limiter);
        for _ in 0..3 {
            tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
        }
        tasks.run();
        give_back(&limiter, &rule, &receipt);
        let (wakes, _) = tasks.run();
        // The request still carries the old limit: a changed one wakes, and this one is refused again.
        let admitted = match name {
            "change" => 0,
            "reset" | "refund" => 2,
            _ => 1,
        };
        assert_eq!(tasks.finished(), (0..admitted).collect::<Vec<_>>(), "{name}");
        assert_eq!(wakes, admitted + 1, "{name}: an admitted waiter wakes the next");
    }
}

#[test]
fn acquisitions_of_several_charges_do_not_block_each_other() {
    let (first, second) =
        (rule("first", &["2/10s"], Algorithm::SlidingLog), rule("second", &["3/10s"], Algorithm::Gcra));
    let limiter = limiter();
    let mut tasks = Tasks::new(&limiter);
    for number in 0..12 {
        let (one, other) = (ask(&first, "alice", 1)[0], ask(&second, "bob", 2)[0]);
        let charges = match number % 4 {
            0 => vec![one, other],
            1 => vec![other, one],
            2 => vec![one, one, other],
            _ => vec![other],
        };
        tasks.spawn(&charges, PATIENT);
    }
    tasks.run_to_the_end();
    assert_eq!(tasks.finished(), (0..12).collect::<Vec<_>>());
}

#[test]
fn acquire_does_not_wait_for_a_shadow_rule() {
    let shadow = Rule::builder("shadow").limit("1/1h".parse().unwrap()).shadow(true).build().unwrap();
    let rule = rule("api", &["1/1h"], Algorithm::SlidingLog);
    let limiter = limiter();
    let both = [ask(&shadow, "alice", 1)[0], ask(&rule, "alice", 1)[0]];
    let mut tasks = Tasks::new(&limiter);
    let admitted = tasks.spawn(&both, PATIENT);
    tasks.spawn(&both, PATIENT);
    let alone = tasks.spawn(&ask(&shadow, "alice", 1), PATIENT);
    tasks.run();
    assert_eq!(tasks.finished(), [admitted, alone]);
}

#[test]
fn waiters_are_bounded() {
    let rule = rule("api", &["1/1h"], Algorithm::FixedWindow);
    let limiter = limiter();
    limiter.check_all(&ask(&rule, "alice", 1)).unwrap();
    let mut tasks = Tasks::new(&limiter);
    for _ in 0..WAITERS_MAX {
        tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
    }
    tasks.run();
    let refused = limiter.acquire_all(&ask(&rule, "alice", 1), Duration::from_secs(7_200));
    assert_eq!(refused.unwrap_err(), CheckError::TooManyWaiters { max: WAITERS_MAX });
    assert_eq!(
        CheckError::TooManyWaiters { max: WAITERS_MAX }.to_string(),
        "waiters: 65536 wait in this limiter, its maximum; lower max_wait, or shed requests"
    );
    let elsewhere = limiter.acquire_all(&ask(&rule, "bob", 1), Duration::from_secs(7_200)).unwrap();
    assert!(elsewhere.allowed(), "an acquisition that need not wait is not counted");
    tasks.cancel(17);
    tasks.spawn(&ask(&rule, "alice", 1), PATIENT);
    tasks.run();
    assert!(tasks.finished().is_empty(), "there is room for another one");
}

#[test]
fn bad_arguments_are_errors() {
    let rule = rule("api", &["10/10s"], Algorithm::SlidingLog);
    let limiter = limiter();
    let error = limiter.acquire_all(&ask(&rule, "alice", 11), PATIENT).unwrap_err();
    assert!(matches!(&error, CheckError::Charge(ChargeError::Never { limit: 10, .. })));
    assert!(error.to_string().starts_with("cost: 11 units can never pass rule `api`"));
}

/// A store with slow peeks: the future is ready at the second poll, with the answer of the first.
struct SlowPeek(MemoryStore<ManualClock>);

impl Store for SlowPeek {
    async fn check<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Store::check(&self.0, call, admission).await
    }

    async fn peek<'a>(&self, call: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let peeked = Store::peek(&self.0, call, admission).await;
        let mut polled = false;
        poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        peeked
    }

    async fn update(&self, call: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        Store::update(&self.0, call, update).await
    }

    async fn inspect(&self, call: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Store::inspect(&self.0, call, rule, key).await
    }

    async fn change(&self, call: Call, rule: &Rule) -> Result<(), StoreError> {
        Store::change(&self.0, call, rule).await
    }

    fn wait_clock(&self) -> &dyn Clock {
        self.0.clock()
    }
}

/// A waiter peeks at its deadline, which charges nothing. The waiter in front left while the peek was in flight, and
/// the peek was returned as an admission that was never charged.
#[test]
fn a_waiter_that_becomes_first_at_its_deadline_is_charged() {
    let api = rule("api", &["1/10s"], Algorithm::SlidingLog);
    let limiter = Limiter::new(SlowPeek(MemoryStore::with_clock(ManualClock::at_us(BOUNDARY_US))));
    let (clock, mut context) = (limiter.store().0.clock(), Context::from_waker(Waker::noop()));
    let receipt = block_on(limiter.check_async(&api, "alice")).unwrap().receipt().unwrap();
    let mut front = Box::pin(limiter.acquire_async(clock, &api, "alice", Duration::from_secs(60)));
    let mut behind = Box::pin(limiter.acquire_async(clock, &api, "alice", Duration::from_secs(5)));
    assert!(front.as_mut().poll(&mut context).is_pending());
    assert!(behind.as_mut().poll(&mut context).is_pending());
    assert_eq!(block_on(limiter.refund_async(&receipt)).unwrap().units, 1);
    clock.advance(Duration::from_secs(5));
    assert!(behind.as_mut().poll(&mut context).is_pending(), "it peeks");
    drop(front);
    let Poll::Ready(decision) = behind.as_mut().poll(&mut context) else { panic!("it is first now") };
    let decision = decision.unwrap();
    assert!(decision.allowed() && decision.is_charged());
    assert!(!block_on(limiter.check_async(&api, "alice")).unwrap().allowed(), "one unit, one admission");
}

/// A clock that moves by a millisecond at every read, and to the end of a park.
#[derive(Default)]
struct BusyClock {
    now_us: AtomicU64,
    parked_until_us: Mutex<Vec<u64>>,
}

impl Clock for BusyClock {
    fn now_us(&self) -> u64 {
        self.now_us.fetch_add(1_000, Ordering::Relaxed)
    }

    fn park_until_us(&self, until_us: u64) {
        self.parked_until_us.lock().unwrap().push(until_us);
        self.now_us.fetch_max(until_us, Ordering::Relaxed);
    }
}

/// A wait ends at an instant. Converted to a duration and back, it grew by the time in between, and a clock that stood
/// still from then on never reached its end.
#[test]
fn time_that_passes_before_a_thread_sleeps_does_not_lengthen_the_sleep() {
    let api = rule("api", &["1/10s"], Algorithm::SlidingLog);
    let limiter = Limiter::with_clock(BusyClock::default());
    assert!(limiter.check(&api, "alice").unwrap().allowed());
    assert!(limiter.acquire(&api, "alice", PATIENT).unwrap().allowed());
    let parked = limiter.clock().parked_until_us.lock().unwrap();
    assert!(!parked.is_empty() && parked.iter().all(|until_us| *until_us < 10 * SECOND_US), "{parked:?}");
}
