//! Interleavings of sweep, admission, refund, reset and admissions over several keys, explored on the
//! real store type with a scheduler of our choosing.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

mod common;

use std::sync::Arc;

use common::{BOUNDARY_US, admission, key, rule};
use shuttle::sync::{Mutex, MutexGuard};
use shuttle::thread;
use slidegate::store::{Lock, Locks, MemoryStore};
use slidegate::time::ManualClock;
use slidegate::{Algorithm, Receipt, Rule};

/// Schedules tried per test.
const SCHEDULES: usize = 1_000;

struct ShuttleLocks;

struct ShuttleLock<T>(Mutex<T>);

impl Locks for ShuttleLocks {
    type Of<T: Send + 'static> = ShuttleLock<T>;
}

impl<T: Send> Lock<T> for ShuttleLock<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap()
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

type Store = MemoryStore<ManualClock, ShuttleLocks>;

/// Two shards, so that keys share them as often as not.
fn store() -> Arc<Store> {
    Arc::new(MemoryStore::with_locks(2, 1 << 20, ManualClock::at_us(BOUNDARY_US)))
}

fn admit(store: &Store, rule: &Rule, name: &str, cost: u64) -> Option<Receipt<'static>> {
    store.check(BOUNDARY_US, &admission(&[(rule, name, cost)])).unwrap().receipt.map(Receipt::into_owned)
}

fn used(store: &Store, rule: &Rule, name: &str) -> u64 {
    store.inspect(BOUNDARY_US, rule, key(name))[0].used
}

fn algorithms() -> [Algorithm; 3] {
    [Algorithm::SlidingLog, Algorithm::SlidingCounter, Algorithm::Gcra]
}

#[test]
fn admit_refund_and_sweep_lose_and_invent_nothing() {
    for algorithm in algorithms() {
        let test = move || {
            let (store, rule) = (store(), Arc::new(rule("api", &["3/10s"], algorithm)));
            let spenders: Vec<_> = (0..3)
                .map(|number| {
                    let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                    thread::spawn(move || {
                        let receipt = admit(&store, &rule, "alice", 2);
                        let refund = receipt.as_ref().filter(|_| number == 0);
                        let given =
                            refund.map_or(0, |receipt| store.refund(BOUNDARY_US, receipt).unwrap().units);
                        receipt.map_or(0, |_| 2) - given
                    })
                })
                .collect();
            let sweeper = {
                let store = Arc::clone(&store);
                thread::spawn(move || store.sweep(BOUNDARY_US))
            };
            let spent: u64 = spenders.into_iter().map(|spender| spender.join().unwrap()).sum();
            sweeper.join().unwrap();
            assert_eq!(used(&store, &rule, "alice"), spent);
            assert!(spent <= 3);
        };
        shuttle::check_random(test, SCHEDULES);
    }
}

#[test]
fn admissions_over_several_keys_in_both_orders_are_one_step() {
    for algorithm in algorithms() {
        let test = move || {
            let (store, rule) = (store(), Arc::new(rule("api", &["2/10s"], algorithm)));
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                    thread::spawn(move || {
                        let mut charges = [(&*rule, "alice", 1), (&*rule, "bob", 1), (&*rule, "carol", 1)];
                        if number % 2 == 0 {
                            charges.reverse();
                        }
                        u64::from(store.check(BOUNDARY_US, &admission(&charges)).unwrap().decision.allowed())
                    })
                })
                .collect();
            let admitted: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!(admitted, 2);
            for name in ["alice", "bob", "carol"] {
                assert_eq!(used(&store, &rule, name), 2, "{name}");
            }
        };
        shuttle::check_random(test, SCHEDULES);
    }
}

#[test]
fn a_reset_voids_a_receipt_or_comes_after_its_refund() {
    for algorithm in algorithms() {
        let test = move || {
            let (store, rule) = (store(), Arc::new(rule("api", &["5/10s"], algorithm)));
            let receipt = admit(&store, &rule, "alice", 5).unwrap();
            let refunder = {
                let store = Arc::clone(&store);
                thread::spawn(move || store.refund(BOUNDARY_US, &receipt).unwrap().units)
            };
            let resetter = {
                let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                thread::spawn(move || store.reset(BOUNDARY_US, &rule, key("alice")).units)
            };
            let spender = {
                let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                thread::spawn(move || admit(&store, &rule, "alice", 4).map_or(0, |_| 4))
            };
            let (given, forgotten) = (refunder.join().unwrap(), resetter.join().unwrap());
            let spent = spender.join().unwrap();
            // Every unit that was charged was given back, forgotten, or is still there.
            assert_eq!(5 + spent, given + forgotten + used(&store, &rule, "alice"));
        };
        shuttle::check_random(test, SCHEDULES);
    }
}
