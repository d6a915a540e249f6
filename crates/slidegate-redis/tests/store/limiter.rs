//! A limiter over Redis: its constructors, waiting in real time, and the outage policy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::common::*;
use slidegate::rule::OnStoreError;
use slidegate::store::{Call, CheckError, Store, StoreError, Update};
use slidegate::testing::limiter_suite;
use slidegate::time::TokioTimer;
use slidegate::{Admission, Limiter, Rule, Verdict};
use slidegate_redis::{LogLayout, OpenError, RedisStore};

/// Every verb and the outage policy, as on every store.
#[test]
fn the_suite_of_the_limiter_passes() {
    const DATABASES: u64 = 64;
    let server = RedisServer::start_with(&["--databases", &DATABASES.to_string()]);
    let stores = AtomicU64::new(0);
    let fresh = async || {
        let database = stores.fetch_add(1, Ordering::Relaxed) % DATABASES;
        in_database(&server.url(), database, LogLayout::Packed).await
    };
    run(async { limiter_suite::run(&fresh, &TokioTimer).await }).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_url_is_enough_for_a_limiter() {
    let server = RedisServer::start();
    run(async {
        let limiter = Limiter::new(RedisStore::connect(&server.url()).await.unwrap());
        let login = Rule::new("login", "1/400d").unwrap();
        // A busy machine may need more than the default deadline.
        let patient = limiter.with_deadline(Duration::from_secs(60));
        assert!(patient.check_async(&login, "alice").await.unwrap().allowed());
        assert!(!patient.check_async(&login, "alice").await.unwrap().allowed());
    });
}

#[test]
fn a_store_that_cannot_be_opened_has_one_error_for_the_url_and_the_connection() {
    let mut server = RedisServer::start();
    server.kill();
    run(async {
        let error = RedisStore::connect("http://localhost").await.unwrap_err();
        assert!(matches!(error, OpenError::Options(_)), "{error:?}");
        assert!(error.to_string().contains("not a Redis scheme"), "{error}");
        let error = RedisStore::connect(&server.url()).await.unwrap_err();
        assert!(matches!(error, OpenError::Connect(_)), "{error:?}");
        assert!(error.to_string().contains("no connection to Redis at"), "{error}");
    });
}

#[test]
fn an_acquisition_is_admitted_after_the_announced_wait() {
    let server = RedisServer::start();
    run(async {
        let limiter = Limiter::new(store(&server.url()).await);
        let api = Rule::new("api", "1/2s").unwrap();
        assert!(limiter.check_async(&api, "alice").await.unwrap().allowed());
        let begin = Instant::now();
        let refused = limiter.check_async(&api, "alice").await.unwrap();
        let wait = refused.retry_after().expect("a denial of the store has a wait");
        assert!(!refused.allowed() && !wait.is_zero() && wait <= Duration::from_secs(2), "{wait:?}");
        let max_wait = Duration::from_secs(60);
        let admitted = limiter.acquire_async(&TokioTimer, &api, "alice", max_wait).await.unwrap();
        assert!(admitted.allowed() && admitted.is_charged());
        let waited = begin.elapsed();
        assert!(wait <= waited && waited < max_wait, "{wait:?} announced, {waited:?} waited");

        // A wait of a day does not fit into a second, and is refused at once.
        let quota = Rule::new("quota", "1/24h").unwrap();
        assert!(limiter.check_async(&quota, "alice").await.unwrap().allowed());
        let refused = limiter.acquire_async(&TokioTimer, &quota, "alice", Duration::from_secs(1)).await;
        assert!(!refused.unwrap().allowed());
    });
}

#[test]
fn the_outage_policy_answers_for_a_killed_server() {
    let mut server = RedisServer::start();
    run(async {
        let limiter = Limiter::new(store_within(&server.url(), Duration::from_millis(100)).await);
        let rule = |name: &str, policy| {
            Rule::builder(name).limit("5/1h".parse().unwrap()).on_store_error(policy).build().unwrap()
        };
        let (open, closed) = (rule("open", OnStoreError::Allow), rule("closed", OnStoreError::Deny));
        server.kill();

        let decision = limiter.check_async(&open, "alice").await.unwrap();
        assert!(decision.allowed() && decision.degraded() && decision.receipt().is_none());
        assert_eq!((decision.used(), decision.remaining(), decision.reset_after()), (None, None, None));
        assert!(matches!(decision.store_error(), Some(StoreError::Unavailable { .. })), "{decision:?}");

        let strict = limiter.with_outage_policy(OnStoreError::Deny);
        for error in [strict.check_async(&open, "alice").await, limiter.check_async(&closed, "alice").await] {
            let error = error.unwrap_err();
            assert!(matches!(error, CheckError::Store(StoreError::Unavailable { .. })), "{error:?}");
        }
        let stats = limiter.stats();
        assert_eq!((stats.store_failures, stats.degraded), (3, 1));
    });
}

/// A limiter does not send them to a store, but another caller may.
#[test]
fn charges_of_unlimited_keys_are_not_counted() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let api = Rule::new("api", "5/1h").unwrap();
    let charges = ["ci-7", "alice"].map(|name| api.charge(name, 2).unwrap());
    run(async {
        let store = store(&server.url()).await;
        let all = Admission::partly_unlimited(&charges, |_| true).unwrap();
        for decision in [store.check(Call::now(), &all).await, store.peek(Call::now(), &all).await] {
            let decision = decision.unwrap();
            assert!(decision.allowed() && !decision.is_charged());
            assert_eq!(decision.verdicts().filter(Verdict::unlimited).count(), 2);
        }
        assert!(watch.keys().is_empty());

        let one = Admission::partly_unlimited(&charges, |number| number == 0).unwrap();
        let decision = store.check(Call::now(), &one).await.unwrap();
        assert_eq!((decision.used(), decision.verdicts().count()), (Some(2), 2));
        assert_eq!(watch.keys(), ["sg:{alice}:api"]);
        assert_eq!(
            store.update(Call::now(), Update::Refund(&decision.receipt().unwrap())).await.unwrap().units,
            2
        );
    });
}
