//! Values of other programs and damaged values stay untouched. Each is an error, and nothing is charged on any key of
//! the admission.

use crate::common::*;
use redis::Value;
use slidegate::store::{Call, Store, StoreError, Update};
use slidegate::{Algorithm, Charge, Rule};

/// Every verb on alice's state is refused, and nothing changes anywhere.
async fn refuses_everything(store: &impl Store, watch: &mut ServerWatch, rules: [&Rule; 2], case: &str) {
    let [own, other] = rules;
    let before = (watch.changes(), watch.everything());
    let requests = [
        admission(&[(own, "alice", 1)]),
        admission(&[(own, "alice", 1), (other, "alice", 1)]),
        admission(&[(other, "alice", 1), (own, "alice", 1)]),
        admission(&[(other, "bob", 1), (own, "alice", 1), (other, "alice", 1)]),
    ];
    for request in &requests {
        assert_refused(store.check(Call::now(), request).await.err(), case);
        assert_refused(store.peek(Call::now(), request).await.err(), case);
    }
    for decision in store.check_batch(Call::now(), &requests).await {
        assert_refused(decision.err(), case);
    }
    assert_refused(store.inspect(Call::now(), own, key("alice")).await.err(), case);
    assert!(
        store.update(Call::now(), Update::Credit(Charge::new(own, key("alice"), 1))).await.is_err(),
        "{case}"
    );
    assert_eq!((watch.changes(), watch.everything()), before, "{case}: something was written");
}

pub(crate) fn assert_refused(error: Option<StoreError>, case: &str) {
    let error = error.unwrap_or_else(|| panic!("{case}: no error"));
    assert!(!error.maybe_charged(), "{case}: nothing can have been charged: {error}");
    assert!(matches!(error, StoreError::Refused { .. }), "{case}: {error:?}");
}

/// A store whose key `sg:{alice}:own` is spoilt, beside healthy ones.
async fn beside(spoil: impl Fn(&mut ServerWatch), case: &str) {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    for (layout, store) in stores(&server.url()).await {
        for algorithm in algorithms_of(layout) {
            watch.command(&["FLUSHALL"]);
            let (own, other) = (rule("own", &["50/400d"], algorithm), rule("other", &["50/400d"], algorithm));
            check(&store, Call::now(), &own, 5).await;
            check(&store, Call::now(), &other, 5).await;
            for key in watch.keys().iter().filter(|key| key.contains(":own")) {
                watch.command(&["RENAME", key, "spoilt"]);
                spoil(&mut watch);
                watch.command(&["RENAME", "spoilt", key]);
            }
            let case = format!("{case}, {layout:?}, {algorithm}");
            refuses_everything(&store, &mut watch, [&own, &other], &case).await;
        }
    }
}

#[test]
fn a_value_of_another_is_left_alone() {
    for value in
        ["5", "SG", "hello", "a much longer value that could be anything at all, but is nothing of ours"]
    {
        let spoil = |watch: &mut ServerWatch| drop(watch.command(&["SET", "spoilt", value]));
        run(beside(spoil, &format!("value {value:?}")));
    }
}

#[test]
fn a_value_of_another_type_is_left_alone() {
    let list = |watch: &mut ServerWatch| {
        watch.command(&["DEL", "spoilt"]);
        watch.command(&["RPUSH", "spoilt", "1"]);
    };
    run(beside(list, "a list"));
    let hash = |watch: &mut ServerWatch| {
        watch.command(&["DEL", "spoilt"]);
        watch.command(&["HSET", "spoilt", "field", "1"]);
    };
    run(beside(hash, "a hash"));
}

/// A value that was cut off at any byte is refused.
#[test]
fn a_damaged_value_is_left_alone() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let store = store(&server.url()).await;
        for algorithm in every_algorithm() {
            watch.command(&["FLUSHALL"]);
            let (own, other) = (rule("own", &["50/400d"], algorithm), rule("other", &["50/400d"], algorithm));
            for cost in 1..=5 {
                check(&store, Call::now(), &own, cost).await;
            }
            let name = watch.keys().remove(0);
            let Value::BulkString(whole) = watch.command(&["GET", &name]) else { panic!("a string") };
            for length in 1..whole.len() {
                watch.set(&name, &whole[..length]);
                let case = format!("{algorithm}: {length} of {} bytes", whole.len());
                refuses_everything(&store, &mut watch, [&own, &other], &case).await;
            }
            watch.set(&name, &whole);
            assert_eq!(used(&store, Call::now(), &own).await, 15, "{algorithm}: the whole value is fine");
        }
    });
}

/// A new state deletes an old sorted set, but not a value of another type.
#[test]
fn a_value_of_another_where_a_sorted_set_would_be_is_left_alone() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let (_, store) = stores(&server.url()).await.remove(1);
        let [own, other] =
            ["own", "other"].map(|name| rule(name, &["50/10s", "90/20s"], Algorithm::SlidingLog));
        watch.command(&["SET", "sg:{alice}:own%10000000", "of another"]);
        check(&store, Call::now(), &other, 5).await;
        let before = watch.everything();
        let request = admission(&[(&other, "alice", 1), (&other, "bob", 1), (&own, "alice", 1)]);
        assert_refused(store.check(Call::now(), &request).await.err(), "several");
        assert_refused(ask(&store, Call::now(), &own, 1).await.err(), "one");
        assert_eq!(watch.everything(), before);
    });
}

/// To tell it from no value would take one more command for every new key; it holds nothing that could be lost.
#[test]
fn an_empty_value_counts_as_none() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let (own, other) =
                    (rule("own", &["50/400d"], algorithm), rule("other", &["50/400d"], algorithm));
                watch.command(&["SET", "sg:{alice}:own", ""]);
                watch.command(&["SET", "sg:{bob}:own", ""]);
                assert_eq!(used(&store, Call::now(), &own).await, 0, "{algorithm}");
                let decision = check(&store, Call::now(), &own, 50).await;
                assert!(decision.allowed(), "{algorithm}");
                let request = admission(&[(&other, "bob", 1), (&own, "bob", 50)]);
                assert!(store.check(Call::now(), &request).await.unwrap().allowed(), "{algorithm}");
                assert_eq!(used_by(&store, Call::now(), &own, "bob").await, 50, "{algorithm}");
                assert!(!check(&store, Call::now(), &own, 1).await.allowed(), "{algorithm}");
            }
        }
    });
}
