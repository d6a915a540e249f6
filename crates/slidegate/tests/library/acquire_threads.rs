//! `acquire` on threads: the tests of `acquire.rs` with parking and real races.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::*;
use slidegate::store::MemoryStore;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Algorithm, Charge, Limiter, Rule};

const PATIENT: Duration = Duration::MAX;

fn limiter() -> Limiter<MemoryStore<ManualClock>> {
    Limiter::with_clock(ManualClock::at_us(BOUNDARY_US))
}

fn ask<'a>(rule: &'a Rule, name: &'a str, cost: u64) -> [Charge<'a>; 1] {
    [Charge::new(rule, key(name), cost)]
}

#[test]
fn threads_are_served_in_the_order_of_arrival() {
    const THREADS: usize = 8;
    let rule = rule("api", &["2/10s"], Algorithm::SlidingLog);
    let limiter = limiter();
    limiter.check_all(&ask(&rule, "alice", 2)).unwrap();
    let order = Mutex::new(Vec::new());
    let clock = limiter.clock();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (limiter, rule, order) = (&limiter, &rule, &order);
            scope.spawn(move || {
                let outcome = limiter.acquire_all(&ask(rule, "alice", 1), PATIENT).unwrap();
                assert!(outcome.receipt().is_some());
                order.lock().unwrap().push(number);
            });
            while clock.sleepers() <= number {
                thread::yield_now();
            }
        }
        for admitted in (2..=THREADS).step_by(2) {
            clock.advance(Duration::from_secs(10));
            while order.lock().unwrap().len() < admitted {
                thread::yield_now();
            }
        }
    });
    // Two are admitted at a time, in any order.
    let order = order.into_inner().unwrap();
    assert!(order.iter().map(|number| number / 2).is_sorted(), "{order:?}");
    assert_eq!(clock.now_us(), BOUNDARY_US + 40 * SECOND_US);
    assert_eq!(clock.sleepers(), 0);
}

#[test]
fn a_refund_wakes_a_thread() {
    let rule = rule("api", &["1/1h"], Algorithm::SlidingLog);
    let limiter = limiter();
    let receipt = limiter.check_all(&ask(&rule, "alice", 1)).unwrap().receipt().unwrap();
    thread::scope(|scope| {
        let waiter = scope
            .spawn(|| limiter.acquire_all(&ask(&rule, "alice", 1), PATIENT).unwrap().receipt().is_some());
        while limiter.clock().sleepers() == 0 {
            thread::yield_now();
        }
        limiter.refund(&receipt).unwrap();
        assert!(waiter.join().unwrap());
    });
}

/// Threads pass one unit around while the clock stands still: a missed wake-up would wait for ever.
#[test]
fn no_wake_is_missed() {
    let rule = rule("api", &["1/1h"], Algorithm::FixedWindow);
    let limiter = limiter();
    let turns = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..250 {
                    let receipt =
                        limiter.acquire_all(&ask(&rule, "alice", 1), PATIENT).unwrap().receipt().unwrap();
                    turns.fetch_add(1, Ordering::SeqCst);
                    limiter.refund(&receipt).unwrap();
                    // An acquisition that does not wait must not consume a wake-up.
                    let passing = limiter.acquire_all(&ask(&rule, "alice", 1), Duration::ZERO).unwrap();
                    passing.receipt().map(|receipt| limiter.refund(&receipt).unwrap());
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 1_000);
    assert_eq!(limiter.clock().now_us(), BOUNDARY_US);
}

/// On the system clock, too, a thread waits until the announced instant.
#[test]
fn threads_wait_on_the_system_clock() {
    let rule = rule("api", &["3/20ms"], Algorithm::SlidingLog);
    let limiter = Limiter::in_memory();
    let started_us = limiter.clock().now_us();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert!(limiter.acquire_all(&ask(&rule, "alice", 1), PATIENT).unwrap().allowed());
                }
            });
        }
    });
    let took_us = limiter.clock().now_us() - started_us;
    assert!(took_us >= 60_000, "12 units at 3 per 20 ms took {took_us} us");
}
