//! Interleavings of sweep, admission, refund, reset and admissions over several keys, explored on the
//! real store type with the `shuttle` scheduler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{BOUNDARY_US, SECOND_US, admission, key, rule};
use shuttle::sync::{Mutex, MutexGuard};
use shuttle::thread;
use slidegate::store::{Lock, Locks, MemoryStore, StoreError};
use slidegate::time::SystemClock;
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

type Store = MemoryStore<SystemClock, ShuttleLocks>;

/// Two shards, so that keys often share one.
fn store() -> Arc<Store> {
    Arc::new(MemoryStore::with_locks(2, 1 << 20).with_seed(1))
}

fn admit(store: &Store, rule: &Rule, name: &str, cost: u64) -> Option<Receipt> {
    store.check(BOUNDARY_US, &admission(&[(rule, name, cost)])).unwrap().receipt()
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
                        u64::from(store.check(BOUNDARY_US, &admission(&charges)).unwrap().allowed())
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

/// Windows that were open at the boundary have passed.
const LATER_US: u64 = BOUNDARY_US + 30 * SECOND_US;

/// A store with enough keys that have ended by [`LATER_US`] for the admissions of a few threads to sweep some.
fn store_with_idle_keys(rule: &Rule) -> Arc<Store> {
    let store = store();
    for number in 0..40 {
        admit(&store, rule, &format!("idle:{number}"), 1).unwrap();
    }
    store
}

/// Admissions sweep their shard now and then; the test makes enough of them.
#[test]
fn a_key_that_has_ended_is_swept_while_it_is_charged_again() {
    for algorithm in algorithms() {
        let swept = Arc::new(AtomicU64::new(0));
        let swept_by_all = Arc::clone(&swept);
        let test = move || {
            let rule = Arc::new(rule("api", &["95/10s"], algorithm));
            let store = store_with_idle_keys(&rule);
            let spenders: Vec<_> = (0..3)
                .map(|number| {
                    let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                    thread::spawn(move || {
                        let mut spent_here = 0;
                        for call in 0..36 {
                            // All threads charge one ended key, and each charges other ended keys.
                            let name = format!("idle:{}", number * 12 + call % 12);
                            let charges = [(&*rule, "idle:39", 1), (&*rule, name.as_str(), 1)];
                            let charges = if call % 3 == 0 { &charges[..] } else { &charges[..1] };
                            let outcome = store.check(LATER_US, &admission(charges)).unwrap();
                            let Some(receipt) = outcome.receipt() else { continue };
                            spent_here += 1;
                            if call % 6 == 1 {
                                spent_here -= store.refund(LATER_US, &receipt).unwrap().units;
                            }
                        }
                        spent_here
                    })
                })
                .collect();
            let spent: u64 = spenders.into_iter().map(|spender| spender.join().unwrap()).sum();
            assert_eq!(store.inspect(LATER_US, &rule, key("idle:39"))[0].used, spent);
            assert!(spent <= 95);
            swept_by_all.fetch_add(store.stats().swept, Ordering::Relaxed);
        };
        shuttle::check_random(test, SCHEDULES / 4);
        assert!(swept.load(Ordering::Relaxed) > 100, "too few keys were swept for a meaningful test");
    }
}

#[test]
fn concurrent_resets_and_sweeps_drop_each_unit_once() {
    for algorithm in algorithms() {
        let test = move || {
            let rule = Arc::new(rule("api", &["1000/10s"], algorithm));
            let store = store_with_idle_keys(&rule);
            let spender = {
                let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                thread::spawn(move || {
                    for _ in 0..40 {
                        let charges = [(&*rule, "idle:7", 1), (&*rule, "alice", 1)];
                        assert!(store.check(LATER_US, &admission(&charges)).unwrap().allowed());
                    }
                })
            };
            let resetters: Vec<_> = (0..2)
                .map(|_| {
                    let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                    thread::spawn(move || {
                        (0..4).map(|_| store.reset(LATER_US, &rule, key("idle:7")).units).sum::<u64>()
                    })
                })
                .collect();
            let sweeper = {
                let store = Arc::clone(&store);
                thread::spawn(move || store.sweep(LATER_US))
            };
            spender.join().unwrap();
            sweeper.join().unwrap();
            let forgotten: u64 = resetters.into_iter().map(|resetter| resetter.join().unwrap()).sum();
            let used = |name| store.inspect(LATER_US, &rule, key(name))[0].used;
            assert_eq!((forgotten + used("idle:7"), used("alice")), (40, 40));
        };
        shuttle::check_random(test, SCHEDULES / 4);
    }
}

#[test]
fn the_budget_holds_and_refused_admissions_leave_nothing_behind() {
    for algorithm in algorithms() {
        let test = move || {
            let rule = Arc::new(rule("api", &["9/10s"], algorithm));
            let store: Arc<Store> = Arc::new(MemoryStore::with_locks(2, 3_000).with_seed(1));
            admit(&store, &rule, "alice", 1).unwrap();
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let (store, rule) = (Arc::clone(&store), Arc::clone(&rule));
                    thread::spawn(move || {
                        let (mut admitted, mut full) = (0, 0);
                        for call in 0..8 {
                            let names = [0, 1].map(|which| format!("{number}:{call}:{which}"));
                            let mut charges = [&*names[0], "alice", &*names[1]].map(|name| (&*rule, name, 1));
                            charges.rotate_left(call % 3);
                            match store.check(BOUNDARY_US, &admission(&charges)) {
                                Ok(outcome) => admitted += u64::from(outcome.allowed()),
                                Err(error) => {
                                    assert_eq!(error, StoreError::Full { budget_bytes: 3_000 });
                                    full += 1;
                                }
                            }
                            let stats = store.stats();
                            assert!(stats.bytes <= stats.budget_bytes, "{stats:?}");
                        }
                        (admitted, full)
                    })
                })
                .collect();
            let (mut admitted, mut full) = (0, 0);
            for thread in threads {
                let (more_admitted, more_full) = thread.join().unwrap();
                (admitted, full) = (admitted + more_admitted, full + more_full);
            }
            assert_eq!(used(&store, &rule, "alice"), 1 + admitted);
            let stats = store.stats();
            assert_eq!(
                (stats.keys, stats.full),
                (1 + 2 * admitted, full),
                "a refused admission left a key behind"
            );
            store.sweep(LATER_US);
            assert_eq!((store.stats().keys, store.stats().bytes), (0, 0));
        };
        shuttle::check_random(test, SCHEDULES / 4);
    }
}
