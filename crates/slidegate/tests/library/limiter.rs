//! The limiter's verbs, and one reading of the clock per call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::*;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Algorithm, Charge, ChargeError, CheckError, Limiter, ReceiptError};

#[test]
fn the_verbs_follow_the_clock() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["10/10s"], algorithm);
        let limiter = Limiter::with_clock(ManualClock::at_us(BOUNDARY_US));
        let ask = |cost| [Charge::new(&rule, key("alice"), cost)];
        let used = || limiter.inspect(&rule, "alice").unwrap()[0].used;

        let receipt = limiter.check_all(&ask(6)).unwrap().receipt().unwrap();
        assert_eq!(limiter.peek_all(&ask(4)).unwrap().used(), Some(6), "{algorithm}: a peek charges nothing");
        assert_eq!(limiter.settle(&receipt, 2).unwrap().units, 4, "{algorithm}");
        assert_eq!(used(), 2, "{algorithm}");
        assert_eq!(limiter.credit(&rule, "alice", 1).unwrap().units, 1, "{algorithm}");
        let second = limiter.check_all(&ask(9)).unwrap().receipt().unwrap();
        assert_eq!(limiter.refund(&second).unwrap().units, 9, "{algorithm}");
        assert_eq!(limiter.reset(&rule, "alice").unwrap().units, 1, "{algorithm}");

        limiter.check_all(&ask(10)).unwrap();
        let refused = limiter.check_all(&ask(1)).unwrap();
        limiter
            .clock()
            .advance(refused.retry_after().unwrap().checked_sub(Duration::from_micros(1)).unwrap());
        assert!(!limiter.check_all(&ask(1)).unwrap().allowed(), "{algorithm}");
        limiter.clock().advance(Duration::from_micros(1));
        assert!(limiter.check_all(&ask(1)).unwrap().allowed(), "{algorithm}");

        limiter.change(&rule.with_rates(&["3/10s".parse().unwrap()]).unwrap()).unwrap();
        limiter.clock().advance(Duration::from_secs(60));
        assert_eq!(limiter.sweep(), 1, "{algorithm}");
        assert_eq!(used(), 0, "{algorithm}");
    }
}

#[test]
fn bad_arguments_are_errors_and_change_nothing() {
    let rule = rule("api", &["10/10s"], Algorithm::SlidingLog);
    let limiter = Limiter::with_clock(ManualClock::at_us(BOUNDARY_US));
    let ask = |cost| [Charge::new(&rule, key("alice"), cost)];
    assert!(matches!(limiter.check_all(&[]), Err(CheckError::Charge(ChargeError::Count { count: 0 }))));
    assert!(matches!(limiter.check_all(&ask(0)), Err(CheckError::Charge(ChargeError::Zero { .. }))));
    assert!(matches!(
        limiter.peek_all(&ask(11)),
        Err(CheckError::Charge(ChargeError::Never { limit: 10, .. }))
    ));
    let elsewhere = Limiter::with_clock(ManualClock::at_us(BOUNDARY_US));
    let receipt = elsewhere.check_all(&ask(1)).unwrap().receipt().unwrap();
    assert_eq!(limiter.refund(&receipt), Err(ReceiptError::Foreign.into()), "a receipt of another limiter");
    assert_eq!(limiter.settle(&receipt, 5), Err(ReceiptError::Foreign.into()));
    assert_eq!(limiter.inspect(&rule, "alice").unwrap()[0].used, 0);
}

/// A clock that counts how often it is read.
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now_us(&self) -> u64 {
        BOUNDARY_US + self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn a_call_reads_the_clock_once() {
    let (quota, costly) =
        (rule("quota", &["9/1s", "9/1m"], Algorithm::Gcra), rule("costly", &["9/1h"], Algorithm::Gcra));
    let limiter = Limiter::with_clock(CountingClock(AtomicU64::new(0)));
    let charges = [&quota, &costly].map(|rule| Charge::new(rule, key("alice"), 1));
    limiter.check_all(&charges).unwrap();
    limiter.peek_all(&charges).unwrap();
    assert_eq!(limiter.clock().0.load(Ordering::SeqCst), 2);
}

/// The small service everyone writes first, on threads and on the system clock.
#[test]
fn threads_share_one_limiter() {
    let rule = Arc::new(rule("default", &["5/60s"], Algorithm::SlidingLog));
    let limiter = Arc::new(Limiter::in_memory());
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let (rule, limiter) = (Arc::clone(&rule), Arc::clone(&limiter));
            thread::spawn(move || {
                let ask = [Charge::new(&rule, key("alice"), 1)];
                limiter.check_all(&ask).unwrap().allowed()
            })
        })
        .collect();
    let admitted = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(admitted.filter(|allowed| *allowed).count(), 5);
}
