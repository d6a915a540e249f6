//! Threads: exactly the limit passes, admissions over several keys are one step, and nothing deadlocks.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::*;
use slidegate::store::{BUDGET_BYTES_MIN, MemoryStore};
use slidegate::testing::Rng;
use slidegate::time::{Clock, ManualClock};
use slidegate::{Admission, Limiter, Rule};

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
            (0..125).map(|_| u64::from(check(&store, BOUNDARY_US, &rule, 1).allowed())).sum()
        });
        assert_eq!(admitted, 50, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &rule), 50, "{algorithm}");
    }
}

/// Threads whose clocks disagree: for a call with an earlier time, time stands still.
#[test]
fn clocks_that_disagree_admit_no_more() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/1h"], algorithm);
        let store = MemoryStore::new();
        let admitted = on_all_threads(|number| {
            let now_us = BOUNDARY_US + number * 1_400 * MILLISECOND_US / THREADS;
            (0..125).map(|_| u64::from(check(&store, now_us, &rule, 1).allowed())).sum()
        });
        assert_eq!(admitted, 50, "{algorithm}");
    }
}

/// Both orders of the same keys: locks taken in the order of the keys would deadlock.
#[test]
fn row_19_admissions_over_several_keys_are_one_step_in_both_orders() {
    for algorithm in every_algorithm() {
        let (quota, costly) = (rule("quota", &["300/1h"], algorithm), rule("costly", &["100/1h"], algorithm));
        let store = MemoryStore::new();
        let admitted = on_all_threads(|number| {
            let charges = [(&quota, "alice", 2), (&costly, "alice", 1), (&quota, "bob", 1)];
            let mut order = charges;
            if number % 2 == 0 {
                order.reverse();
            }
            (0..40).map(|_| u64::from(store.check(BOUNDARY_US, &admission(&order)).unwrap().allowed())).sum()
        });
        assert_eq!(admitted, 100, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &costly), 100, "{algorithm}");
        assert_eq!(used(&store, BOUNDARY_US, &quota), 200, "{algorithm}: a denial charges nowhere");
        assert_eq!(store.inspect(BOUNDARY_US, &quota, key("bob"))[0].used, 100, "{algorithm}");
    }
}

#[test]
fn a_receipt_presented_by_all_at_once_works_once() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/10s"], algorithm);
        let store = MemoryStore::new();
        let receipt = check(&store, BOUNDARY_US, &rule, 20).receipt().unwrap();
        check(&store, BOUNDARY_US, &rule, 30);
        let given = on_all_threads(|_| store.refund(BOUNDARY_US, &receipt).unwrap().units);
        assert_eq!((given, used(&store, BOUNDARY_US, &rule)), (20, 30), "{algorithm}");
    }
}

/// A sweep that removes a key that was just charged.
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
                        u64::from(check(&store, BOUNDARY_US, &rule, 1).allowed())
                    }
                })
                .sum()
        });
        assert_eq!((admitted, used(&store, BOUNDARY_US, &rule)), (400, 400), "{algorithm}");
    }
}

/// A flood of new keys beyond the budget does not loosen the limit of an existing key.
#[test]
fn a_flood_at_the_budget_beside_a_limited_key() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["50/1h"], algorithm);
        let store = MemoryStore::with_budget(BUDGET_BYTES_MIN).unwrap().with_seed(1);
        // A log needs its memory before the flood.
        let receipts: Vec<_> =
            (0..50).map(|_| check(&store, BOUNDARY_US, &rule, 1).receipt().unwrap()).collect();
        for receipt in &receipts {
            store.refund(BOUNDARY_US, receipt).unwrap();
        }
        check(&store, BOUNDARY_US, &rule, 1);
        let admitted = on_all_threads(|number| {
            let mut admitted = 0;
            for call in 0..6_000 {
                let name = format!("flood:{number}:{call}");
                drop(store.check(BOUNDARY_US, &admission(&[(&rule, &name, 1)])));
                if call % 50 == 0 {
                    let outcome = store.check(BOUNDARY_US, &admission(&[(&rule, "alice", 1)]));
                    admitted += u64::from(outcome.is_ok_and(|outcome| outcome.allowed()));
                    assert!(store.stats().bytes <= BUDGET_BYTES_MIN, "{:?}", store.stats());
                }
            }
            admitted
        });
        assert!(store.stats().full > 0, "{algorithm}");
        assert_eq!(
            used(&store, BOUNDARY_US, &rule),
            1 + admitted,
            "{algorithm}: nothing lost, nothing double"
        );
        assert_eq!(admitted, 49, "{algorithm}");
    }
}

fn batch<'a>(rule: &'a Rule, names: &'a [String]) -> Vec<Admission<'a>> {
    names.iter().map(|name| admission(&[(rule, name, 1)])).collect()
}

#[test]
fn batches_of_all_threads_get_exactly_the_limit() {
    let names = vec!["alice".to_owned(); 25];
    for algorithm in every_algorithm() {
        let rule = rule("api", &["333/1h"], algorithm);
        let limiter = Limiter::with_clock(ManualClock::at_us(BOUNDARY_US));
        let admitted = on_all_threads(|_| {
            let outcomes = (0..10).flat_map(|_| limiter.check_batch(&batch(&rule, &names)));
            outcomes.map(|outcome| u64::from(outcome.unwrap().allowed())).sum()
        });
        assert_eq!((admitted, limiter.inspect(&rule, "alice").unwrap()[0].used), (333, 333), "{algorithm}");
    }
}

/// Every field of the decisions, and what the receipts were charged.
#[test]
fn a_batch_answers_as_its_admissions_would_one_by_one() {
    for algorithm in every_algorithm() {
        let rules = [rule("one", &["7/10s"], algorithm), rule("two", &["5/1s", "9/10s"], algorithm)];
        let mut rng = Rng::new(7);
        let clocks = || ManualClock::at_us(BOUNDARY_US);
        let (together, apart) = (Limiter::with_clock(clocks()), Limiter::with_clock(clocks()));
        for round in 0..300 {
            let pass = std::time::Duration::from_micros(rng.below(2 * SECOND_US));
            together.clock().advance(pass);
            apart.clock().advance(pass);
            let charges: Vec<Vec<_>> = (0..rng.between(1, 20))
                .map(|_| {
                    let charge =
                        |rng: &mut Rng| (rng.pick(&rules), *rng.pick(&["a", "b", "c"]), rng.between(1, 2));
                    (0..rng.between(1, 2)).map(|_| charge(&mut rng)).collect()
                })
                .collect();
            let admissions: Vec<Admission<'_>> = charges.iter().map(|charges| admission(charges)).collect();
            let batched = together.check_batch(&admissions);
            assert_eq!(batched.len(), admissions.len());
            for (batched, charges) in batched.into_iter().zip(&charges) {
                let charges: Vec<_> = charges
                    .iter()
                    .map(|&(rule, name, cost)| slidegate::Charge::new(rule, key(name), cost))
                    .collect();
                let (batched, single) = (batched.unwrap(), apart.check_all(&charges).unwrap());
                assert_eq!(numbers(&batched), numbers(&single), "{algorithm}, round {round}");
                let places = [batched.receipt(), single.receipt()].map(|receipt| {
                    receipt.map(|receipt| {
                        let charges = receipt.charges().iter();
                        charges
                            .map(|charge| (charge.rule().to_owned(), charge.key().to_string(), charge.cost()))
                            .collect::<Vec<_>>()
                    })
                });
                assert_eq!(places[0], places[1], "{algorithm}, round {round}");
            }
        }
    }
}

/// A clock that counts how often it is read.
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now_us(&self) -> u64 {
        BOUNDARY_US + self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn a_batch_reads_the_clock_once() {
    let rule = rule("api", &["9/1h"], every_algorithm()[0]);
    let names: Vec<String> = (0..40).map(|number| format!("key:{number}")).collect();
    let limiter = Limiter::with_clock(CountingClock(AtomicU64::new(0)));
    limiter.check_batch(&batch(&rule, &names));
    assert_eq!(limiter.clock().0.load(Ordering::SeqCst), 1);
}
