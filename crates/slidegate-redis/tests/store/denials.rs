//! A denial writes nothing: Redis's counter of changes and all values stay the same.

use crate::common::*;
use slidegate::Rule;
use slidegate::store::{Call, Store};

/// Denied costs fall from call to call, so that no earlier denial implies the next.
async fn denials_write_nothing(store: &impl Store, watch: &mut ServerWatch, when: Call, rule: &Rule) {
    let algorithm = rule.algorithm();
    check(store, when, rule, 40).await;
    check(store, when, rule, 20).await;
    let before = (watch.changes(), watch.everything());
    assert!(before.0 > 0 && !before.1.is_empty(), "{algorithm}: an admission writes");
    for cost in (41..=100).rev() {
        let decision = check(store, when, rule, cost).await;
        assert!(!decision.allowed(), "{algorithm}: {cost} pass although 60 of 100 are used");
    }
    let requests: Vec<_> = (41..=100).rev().map(|cost| admission(&[(rule, "alice", cost)])).collect();
    for decision in store.check_batch(when, &requests).await {
        assert!(!decision.unwrap().allowed(), "{algorithm}");
    }
    for cost in 1..=100 {
        assert_eq!(peek(store, when, rule, cost).await.allowed(), cost <= 40, "{algorithm}: {cost}");
    }
    assert_eq!(used(store, when, rule).await, 60, "{algorithm}");
    assert_eq!(
        (watch.changes(), watch.everything()),
        before,
        "{algorithm}: a denial, a peek or a look has written"
    );
    assert!(check(store, when, rule, 40).await.allowed(), "{algorithm}: what was left is left");
}

#[test]
fn rows_01_and_07_denials_write_nothing_and_extend_no_ttl() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for (number, algorithm) in algorithms_of(layout).into_iter().enumerate() {
                for when in [Call::now(), Call::at_us(BOUNDARY_US)] {
                    watch.command(&["FLUSHALL"]);
                    let rule = rule(&format!("rule-{number}"), &["100/400d", "500/300d"], algorithm);
                    denials_write_nothing(&store, &mut watch, when, &rule).await;
                }
            }
        }
    });
}

/// One rule admits and another denies: nothing is written for either, in any order.
#[test]
fn row_19_a_denial_of_one_charge_writes_nothing_for_the_others() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let (quota, search) =
                    (rule("quota", &["1000/400d"], algorithm), rule("search", &["5/400d"], algorithm));
                let (first, last) = (
                    [(&search, "alice", 1), (&quota, "alice", 1)],
                    [(&quota, "alice", 1), (&search, "alice", 1)],
                );
                let bob = [(&quota, "bob", 1), (&search, "alice", 1), (&quota, "alice", 1)];
                check(&store, Call::now(), &search, 5).await;
                let before = (watch.changes(), watch.everything());
                for request in [admission(&first), admission(&last), admission(&bob)] {
                    let decision = store.check(Call::now(), &request).await.unwrap();
                    assert!(!decision.allowed(), "{algorithm}");
                    assert_eq!(decision.rule(), "search", "{algorithm}");
                }
                assert_eq!((watch.changes(), watch.everything()), before, "{algorithm}");
            }
        }
    });
}
