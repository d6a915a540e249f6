//! Threads: exactly the limit passes, admissions over several keys are one step, and nothing deadlocks.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

mod common;

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::*;
use slidegate::store::MemoryStore;

const THREADS: u64 = 8;

/// Runs `act` on all threads at once and sums what they return.
fn on_all_threads(act: impl Fn(u64) -> u64 + Sync) -> u64 {
    let (barrier, sum) = (Barrier::new(8), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (barrier, sum, act) = (&barrier, &sum, &act);
            scope.spawn(move || {
                barrier.wait();
                sum.fetch_add(act(number), Ordering::SeqCst);
            });
        }
    });
    sum.into_inner()
}

/// Check-then-act races, and requests of one microsecond that overwrite each other.
#[test]
fn row_16_a_thousand_callers_get_exactly_the_limit() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/10s"], algorithm);
        let store = MemoryStore::new();
        let admitted = on_all_threads(|_| {
            (0..125).map(|_| u64::from(check(&store, BOUNDARY_US, &rule, 1).decision.allowed())).sum()
        });
        assert_eq!(admitted, 50, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 50, "{algorithm}");
    }
}

/// Threads whose clocks disagree: whoever comes late with an earlier time finds time standing still.
#[test]
fn clocks_that_disagree_admit_no_more() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/1h"], algorithm);
        let store = MemoryStore::new();
        let admitted = on_all_threads(|number| {
            let now_us = BOUNDARY_US + number * 1_400 * MILLISECOND_US / THREADS;
            (0..125).map(|_| u64::from(check(&store, now_us, &rule, 1).decision.allowed())).sum()
        });
        assert_eq!(admitted, 50, "{algorithm}");
    }
}

/// Both orders of the same keys, so that locks taken as they come would deadlock.
#[test]
fn row_19_admissions_over_several_keys_are_one_step_in_both_orders() {
    for algorithm in every_algorithm() {
        let (quota, dear) = (rule("quota", &["300/1h"], algorithm), rule("dear", &["100/1h"], algorithm));
        let store = MemoryStore::new();
        let admitted = on_all_threads(|number| {
            let charges = [(&quota, "alice", 2), (&dear, "alice", 1), (&quota, "bob", 1)];
            let mut order = charges;
            if number % 2 == 0 {
                order.reverse();
            }
            (0..40)
                .map(|_| u64::from(store.check(BOUNDARY_US, &admission(&order)).unwrap().decision.allowed()))
                .sum()
        });
        assert_eq!(admitted, 100, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &dear), 100, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &quota), 200, "{algorithm}: a denial charges nowhere");
        assert_eq!(store.inspect(BOUNDARY_US, &quota, key("bob"))[0].used, 100, "{algorithm}");
    }
}

#[test]
fn a_receipt_presented_by_all_at_once_works_once() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/10s"], algorithm);
        let store = MemoryStore::new();
        let receipt = check(&store, BOUNDARY_US, &rule, 20).receipt.unwrap();
        check(&store, BOUNDARY_US, &rule, 30);
        let given = on_all_threads(|_| store.refund(BOUNDARY_US, &receipt).unwrap().units);
        assert_eq!((given, used(&store, BOUNDARY_US, &rule)), (20, 30), "{algorithm}");
    }
}

/// A sweeper that removes a key just charged.
#[test]
fn row_17_sweeping_beside_charging_loses_nothing() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["400/1h"], algorithm);
        let store = MemoryStore::new();
        let admitted = on_all_threads(|number| {
            (0..100)
                .map(|_| {
                    if number == 0 {
                        store.sweep(BOUNDARY_US);
                        0
                    } else {
                        u64::from(check(&store, BOUNDARY_US, &rule, 1).decision.allowed())
                    }
                })
                .sum()
        });
        assert_eq!((admitted, used(&store, BOUNDARY_US, &rule)), (400, 400), "{algorithm}");
    }
}
