//! Many processes and threads on one file; processes that are killed.

use std::time::Duration;

use crate::common::child::{ChildOrders, ChildReport};
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, StoreError};
use slidegate::testing::Rng;
use slidegate::time::{Clock, SystemClock};
use slidegate_sqlite::{Durability, SqliteStore};

#[test]
fn two_hundred_processes_on_a_new_file_admit_exactly_the_limit() {
    for durability in [Durability::Normal, Durability::Full] {
        let directory = Directory::new();
        let path = directory.file();
        let orders =
            ChildOrders { path: &path, durability, rate: "50/400d", algorithm: 0, cost: 1, times: 1 };
        let children: Vec<_> = (0..200).map(|_| orders.start()).collect();
        let reports: Vec<_> = children.into_iter().flat_map(|mut child| child.rest()).collect();
        let count = |what: &ChildReport| reports.iter().filter(|report| *report == what).count();
        let failed: Vec<_> =
            reports.iter().filter(|report| matches!(report, ChildReport::Failed(_))).collect();
        assert_eq!(
            (count(&ChildReport::Admitted(1)), count(&ChildReport::Denied)),
            (50, 150),
            "{durability:?}: {failed:?}"
        );
    }
}

#[test]
fn threads_with_connections_of_their_own_and_shared_admit_exactly_the_limit() {
    let directory = Directory::new();
    let rule = rule("api", &["500/400d"], Algorithm::SlidingLog);
    let shared = open(directory.file());
    let ask_all =
        |store: &SqliteStore| (0..50).filter(|_| check(store, Call::now(), &rule, 1).allowed()).count();
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..16)
                .map(|number| {
                    let (shared, directory, ask_all) = (&shared, &directory, &ask_all);
                    scope.spawn(move || {
                        if number % 2 == 0 { ask_all(shared) } else { ask_all(&open(directory.file())) }
                    })
                })
                .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((admitted, used(&shared, Call::now(), &rule)), (500, 500));
}

/// 16 threads and no file: each finds it missing, partly created, or created.
#[test]
fn threads_that_create_the_file_together_share_it() {
    for _ in 0..20 {
        let directory = Directory::new();
        let rule = rule("api", &["10/400d"], Algorithm::FixedWindow);
        let admitted: usize = std::thread::scope(|scope| {
            let ask_once = || usize::from(check(&open(directory.file()), Call::now(), &rule, 1).allowed());
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask_once)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 10);
    }
}

/// The use in the file is at least the acknowledged units. At most the last charge of every killed process is added.
#[test]
fn two_hundred_kills_lose_nothing_that_was_acknowledged() {
    let directory = Directory::new();
    let path = directory.file();
    // Per algorithm: acknowledged, and at most in doubt.
    let mut units = [(0, 0); 6];
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let durability = *rng.pick(&[Durability::Full, Durability::Normal]);
        let algorithm = usize::try_from(rng.below(6)).unwrap();
        let orders = ChildOrders {
            path: &path,
            durability,
            // So slow that a gcra backlog drains nothing while the test runs.
            rate: "30000/400d",
            algorithm,
            cost: rng.between(1, 40),
            times: u64::MAX,
        };
        let mut child = orders.start();
        let mut reports: Vec<_> = (0..rng.below(12)).map_while(|_| child.next()).collect();
        reports.extend(child.kill());
        let acknowledged = reports.iter().map(|report| match report {
            ChildReport::Admitted(admitted) => *admitted,
            // On a slow machine it may get far before it is killed.
            ChildReport::Denied => 0,
            ChildReport::Failed(why) => panic!("seed {seed}: {why}"),
        });
        let acknowledged: u64 = acknowledged.sum();
        let (known, doubt) = &mut units[algorithm];
        *known += acknowledged;
        *doubt += orders.cost;
        let algorithm = Algorithm::ALL[algorithm];
        let rule = rule(algorithm.name(), &[orders.rate], algorithm);
        let used = used(&open(&path), Call::now(), &rule);
        assert!(
            (*known..=*known + *doubt).contains(&used),
            "seed {seed}, {durability:?}, {algorithm}: {used} used, {known} acknowledged, {doubt} in doubt"
        );
    }
    let sound: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_call_that_times_out_is_unavailable_and_not_charged() {
    let directory = Directory::new();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    let patient = open(directory.file());
    let short = options(directory.file()).deadline(Duration::from_millis(30)).unwrap();
    let impatient = SqliteStore::open_with(&short).unwrap();
    let other = rusqlite::Connection::open(directory.file()).unwrap();
    check(&patient, Call::now(), &rule, 1);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let clock = SystemClock::new();
    let begun_us = clock.now_us();
    let error = ask(&impatient, Call::now(), &rule, 1).unwrap_err();
    let waited_us = clock.now_us() - begun_us;
    assert!(waited_us >= 29_000, "gave up after {waited_us} us");
    assert!(matches!(&error, StoreError::Unavailable { why } if why.contains("deadline")), "{error}");
    assert!(!ask(&impatient, Call::now(), &rule, 5).unwrap().allowed(), "a denial needs no lock");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(used(&patient, Call::now(), &rule), 1);
    assert!(check(&impatient, Call::now(), &rule, 4).allowed());
}

/// Eight processes write without a pause; checkpoints still happen.
#[test]
fn the_log_does_not_grow_without_bound() {
    let directory = Directory::new();
    let path = directory.file();
    let orders = ChildOrders {
        path: &path,
        durability: Durability::Normal,
        rate: "1000000/400d",
        algorithm: 4,
        cost: 1,
        times: 1_500,
    };
    let children: Vec<_> = (0..8).map(|_| orders.start()).collect();
    let reports: Vec<_> = children.into_iter().flat_map(|mut child| child.rest()).collect();
    let others: Vec<_> = reports.iter().filter(|report| **report != ChildReport::Admitted(1)).collect();
    assert!(reports.len() == 12_000 && others.is_empty(), "{} and {others:?}", reports.len());
    let log_bytes = std::fs::metadata(directory.path().join("quota.db-wal")).unwrap().len();
    assert!(log_bytes < 5 << 20, "12,000 admissions of at least two pages, and a log of {log_bytes} bytes");
}
