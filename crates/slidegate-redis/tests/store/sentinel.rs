//! Sentinel: the store follows a failover, and loses what the old primary acknowledged and did not replicate, no more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::sentinels::{SentinelGroup, info, signal};
use crate::common::wait::wait_until;
use crate::common::*;
use crate::faults::PLENTY;
use slidegate::store::{Call, StoreError};
use slidegate::{Algorithm, Rule};
use slidegate_redis::{ConnectError, RedisOptions, RedisStore};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::Instant;

const CALLERS: usize = 8;

/// Counts of the load on one key.
#[derive(Debug, Default)]
struct Load {
    admitted: AtomicU64,
    ambiguous: AtomicU64,
    failed: AtomicU64,
    stop: AtomicBool,
}

impl Load {
    fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::SeqCst)
    }

    /// Asks for one unit after the other.
    async fn run(self: Arc<Self>, store: Arc<RedisStore>, rule: Arc<Rule>) {
        while !self.stop.load(Ordering::SeqCst) {
            match ask(&*store, Call::now(), &rule, 1).await {
                Ok(decision) => {
                    assert!(decision.allowed());
                    self.admitted.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) if error.maybe_charged() => drop(self.ambiguous.fetch_add(1, Ordering::SeqCst)),
                Err(StoreError::Unavailable { .. } | StoreError::Refused { .. }) => {
                    self.failed.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Waits until a call is admitted; returns how long that took.
async fn back(load: &Load) -> Duration {
    let (begin, before) = (Instant::now(), load.admitted());
    while load.admitted() == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(begin.elapsed() < Duration::from_secs(30), "no answer although there is a primary: {load:?}");
    }
    begin.elapsed()
}

/// A primary is killed under load. What is in use afterwards lacks at most what was admitted after the last unit that is
/// known to be replicated.
#[test]
fn a_failover_under_load_is_followed() {
    let mut group = SentinelGroup::start(None);
    let rule = Arc::new(rule("api", &[PLENTY], Algorithm::SlidingCounter));
    run(async {
        let options =
            RedisOptions::new(&group.url("")).unwrap().deadline(Duration::from_millis(500)).unwrap();
        let store = Arc::new(RedisStore::connect_with(&options).await.unwrap());
        let (load, mut callers) = (Arc::new(Load::default()), JoinSet::new());
        for _ in 0..CALLERS {
            callers.spawn(Arc::clone(&load).run(Arc::clone(&store), Arc::clone(&rule)));
        }
        back(&load).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut replicated = 0;
        block_in_place(|| {
            let mut connection = group.servers[0].connection();
            for _ in 0..20 {
                let admitted = load.admitted();
                server::command(&mut connection, &["SET", "checkpoint", "1"]);
                assert_eq!(server::command(&mut connection, &["WAIT", "1", "60000"]), redis::Value::Int(1));
                replicated = admitted;
            }
            group.servers[0].kill();
        });
        // Some callers may still count the answers that had arrived.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let acknowledged = load.admitted();
        let killed = Instant::now();
        block_in_place(|| group.wait_for_failover());
        let decided = killed.elapsed();
        let took = back(&load).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        load.stop.store(true, Ordering::SeqCst);
        callers.join_all().await;

        let (admitted, used) = (load.admitted(), used(&*store, Call::now(), &rule).await);
        let lost = admitted.saturating_sub(used);
        println!(
            "the sentinels decided after {decided:?}, and calls were answered {took:?} later; {lost} of {admitted} \
             admitted units were lost, {} were not known to be replicated: {load:?}",
            acknowledged - replicated
        );
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(
            lost <= acknowledged - replicated,
            "{lost} lost, {acknowledged} - {replicated} not replicated"
        );
        assert!(used <= admitted + load.ambiguous.load(Ordering::SeqCst), "{used} in use, but {load:?}");
        assert!(admitted > acknowledged, "{load:?}");
    });
}

/// The bound is attained: a limit of 100, of which 40 units are replicated and 30 are not, admits 130 after a failover.
#[test]
fn over_admission_is_what_was_acknowledged_and_not_replicated() {
    let mut group = SentinelGroup::start(None);
    let rule = rule("api", &["100/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&group.url("")).await;
        assert!(check(&store, Call::now(), &rule, 40).await.allowed());
        wait_until("40 units are replicated", || info(&group.servers[1], "keyspace").contains("keys=1"));
        // The replica is cut off, and cannot come back while it is stopped.
        signal(group.servers[1].process(), "STOP");
        group.servers[0].command(&["CLIENT", "KILL", "TYPE", "replica"]);
        assert!(check(&store, Call::now(), &rule, 30).await.allowed());
        group.servers[0].kill();
        signal(group.servers[1].process(), "CONT");
        block_in_place(|| group.wait_for_failover());
        let mut admitted = 70;
        while admitted < 1_000 {
            match ask(&store, Call::now(), &rule, 1).await {
                Ok(decision) if decision.allowed() => admitted += 1,
                Ok(_) => break,
                Err(StoreError::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(admitted, 100 + 30);
    });
}

/// After a planned failover the old primary works on, and what it admits is lost. The store leaves it.
#[test]
fn a_primary_that_works_on_after_a_failover_is_left() {
    let group = SentinelGroup::start(None);
    let rule = rule("api", &[PLENTY], Algorithm::SlidingCounter);
    run(async {
        let store = store(&group.url("")).await;
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        block_in_place(|| {
            group.fail_over();
            group.wait_for_failover();
        });
        let begin = Instant::now();
        let is_there = || info(&group.servers[1], "commandstats").contains("cmdstat_eval");
        while !is_there() {
            let _ = ask(&store, Call::now(), &rule, 1).await;
            assert!(begin.elapsed() < Duration::from_secs(30), "calls still go to the old primary");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!("the old primary was left after {:?}", begin.elapsed());
    });
}

/// A server that takes no writes is left at once. While the sentinels still name it, calls fail with that cause.
#[test]
fn a_demoted_primary_is_not_used_although_a_sentinel_names_it() {
    let group = SentinelGroup::start(None);
    let rule = rule("api", &[PLENTY], Algorithm::SlidingCounter);
    run(async {
        let store = store(&group.url("")).await;
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        // Of nobody, so that it keeps its data.
        group.servers[0].command(&["REPLICAOF", "127.0.0.1", "1"]);
        match ask(&store, Call::now(), &rule, 1).await {
            Err(StoreError::Unavailable { why }) => assert!(why.contains("is a replica"), "{why}"),
            other => panic!("{other:?}"),
        }
        group.servers[0].command(&["REPLICAOF", "NO", "ONE"]);
        let begin = Instant::now();
        while ask(&store, Call::now(), &rule, 1).await.is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "the primary is back");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(used(&store, Call::now(), &rule).await, 2, "no failed call was charged");
    });
}

#[test]
fn a_sentinel_that_hangs_costs_one_timeout() {
    let group = SentinelGroup::start(None);
    group.hang_sentinel(0);
    let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
    run(async {
        let options = options(&group.url("")).connect_timeout(Duration::from_millis(300)).unwrap();
        let store = RedisStore::lazy(&options).unwrap();
        let begin = Instant::now();
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    });
}

#[test]
fn the_password_of_the_sentinels_is_needed_and_never_shown() {
    let group = SentinelGroup::start(Some("hunter2"));
    let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
    run(async {
        let store = store(&group.url("?sentinel_password=hunter2")).await;
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        assert!(!format!("{store:?}").contains("hunter2"));
        for parameters in ["", "?sentinel_password=hunter3"] {
            let options = options(&group.url(parameters));
            let error = RedisStore::connect_with(&options).await.unwrap_err();
            assert!(matches!(error, ConnectError::SentinelLogin { .. }), "{error}");
            let called = ask(&RedisStore::lazy(&options).unwrap(), Call::now(), &rule, 1).await.unwrap_err();
            for shown in [error.to_string(), called.to_string(), format!("{options:?}")] {
                assert!(!shown.contains("hunter"), "{shown}");
            }
            assert!(called.to_string().contains("sentinel_password"), "{called}");
        }
    });
}

#[test]
fn an_unknown_primary_is_named() {
    let group = SentinelGroup::start(None);
    run(async {
        let url = group.url("").replace("/main", "/other");
        let error = RedisStore::connect_with(&options(&url)).await.unwrap_err();
        assert!(matches!(&error, ConnectError::NoPrimary { master, .. } if master == "other"), "{error}");
        assert!(error.to_string().contains("the name in the URL"), "{error}");
        // A server that is no sentinel says so too.
        let url = format!("redis+sentinel://127.0.0.1:{}/main", group.servers[0].port());
        let error = RedisStore::connect_with(&options(&url)).await.unwrap_err();
        assert!(matches!(&error, ConnectError::NoPrimary { .. }), "{error}");
    });
}
