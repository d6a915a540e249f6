//! Migration from the sets of other limiters, and between layouts.

use std::time::Duration;

use crate::common::*;
use slidegate::store::{Call, Store, StoreError, Update};
use slidegate::{Algorithm, Charge};
use slidegate_redis::LogLayout;

const NAME: &str = "sg:{alice}:api";

fn classical(watch: &mut ServerWatch, scores: &[u64]) {
    for (unit, score) in scores.iter().enumerate() {
        watch.command(&["ZADD", NAME, &score.to_string(), &format!("someone:{unit}")]);
    }
}

#[test]
fn a_set_of_another_limiter_is_taken_over_with_all_that_it_holds() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let rule = rule("api", &["5/60s"], Algorithm::SlidingLog);
    let second = |number: u64| BOUNDARY_US + number * SECOND_US;
    classical(&mut watch, &[second(0), second(10), second(20), second(30)]);
    run(async {
        let store = prefixed(&server.url(), "sg", LogLayout::SortedSet).await;
        let now = Call::at_us(second(61));
        assert_eq!(used(&store, now, &rule).await, 3, "the first has left");
        let admitted = check(&store, now, &rule, 2).await;
        assert!(admitted.allowed() && admitted.used() == Some(5));
        let denied = check(&store, now, &rule, 1).await;
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(9)), "when that of second 10 leaves");
    });
    let members = watch.command(&["ZRANGE", NAME, "0", "-1", "WITHSCORES"]);
    assert_eq!(format!("{members:?}").matches("someone:").count(), 3, "{members:?}");
}

#[test]
fn a_set_in_milliseconds_is_refused_and_unchanged() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let rule = rule("api", &["5/60s"], Algorithm::SlidingLog);
    classical(&mut watch, &[BOUNDARY_US / 1_000]);
    let before = watch.command(&["DUMP", NAME]);
    run(async {
        let store = prefixed(&server.url(), "sg", LogLayout::SortedSet).await;
        let error = ask(&store, Call::at_us(BOUNDARY_US), &rule, 1).await.unwrap_err();
        assert!(matches!(&error, StoreError::Refused { why, .. } if why.contains("microseconds")), "{error}");
    });
    assert_eq!(watch.command(&["DUMP", NAME]), before);
}

#[test]
fn layouts_take_over_from_one_another() {
    for rates in [&["5/60s"][..], &["5/60s", "50/1h"]] {
        let server = RedisServer::start();
        let mut watch = ServerWatch::new(&server);
        let rule = rule("api", rates, Algorithm::SlidingLog);
        run(async {
            let now = Call::at_us(BOUNDARY_US);
            let packed = prefixed(&server.url(), "sg", LogLayout::Packed).await;
            let sets = prefixed(&server.url(), "sg", LogLayout::SortedSet).await;
            check(&packed, now, &rule, 2).await;
            assert_eq!(used(&sets, now, &rule).await, 2);
            assert!(check(&sets, now, &rule, 1).await.allowed());
            assert_eq!(watch.text(&["TYPE", NAME]), "zset");
            assert_eq!(used(&packed, now, &rule).await, 3);
            assert!(!check(&packed, now, &rule, 3).await.allowed());
            assert_eq!(watch.text(&["TYPE", NAME]), "zset", "a denial writes nothing");
            assert!(check(&packed, now, &rule, 2).await.allowed());
            assert_eq!(watch.keys(), [NAME], "{rates:?}: nothing stays beside it");
            assert!(!check(&sets, now, &rule, 1).await.allowed());
        });
    }
}

/// A reset works from both layouts.
#[test]
fn a_reset_leaves_nothing_of_another_layout() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let rule = rule("api", &["5/60s", "50/1h"], Algorithm::SlidingLog);
    run(async {
        let now = Call::at_us(BOUNDARY_US);
        let packed = prefixed(&server.url(), "sg", LogLayout::Packed).await;
        let sets = prefixed(&server.url(), "sg", LogLayout::SortedSet).await;
        for (charging, resetting) in [(&packed, &sets), (&sets, &packed)] {
            check(charging, now, &rule, 3).await;
            assert_eq!(resetting.update(now, Update::Reset(&rule, key("alice"))).await.unwrap().units, 3);
            assert_eq!(watch.keys(), Vec::<String>::new());
        }
    });
}

/// A rule of the same name may have another algorithm.
#[test]
fn another_algorithm_goes_on_with_what_the_sets_hold() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let logged = rule("api", &["5/60s", "50/1h"], Algorithm::SlidingLog);
    let counted = rule("api", &["5/60s", "50/1h"], Algorithm::SlidingCounter);
    run(async {
        let store = prefixed(&server.url(), "sg", LogLayout::SortedSet).await;
        check(&store, Call::at_us(BOUNDARY_US), &logged, 4).await;
        assert!(!check(&store, Call::at_us(BOUNDARY_US), &counted, 2).await.allowed());
        assert!(check(&store, Call::at_us(BOUNDARY_US), &counted, 1).await.allowed());
        assert_eq!(used(&store, Call::at_us(BOUNDARY_US), &counted).await, 5);
    });
    assert_eq!(watch.keys(), [NAME]);
}

/// The limit with the longest window has the key itself; a limit that gets another name renames its set.
#[test]
fn a_change_of_limits_renames_and_leaves_no_set_behind() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let (store, now) =
            (prefixed(&server.url(), "sg", LogLayout::SortedSet).await, Call::at_us(BOUNDARY_US));
        let shapes: [(&[&str], &[&str]); 5] = [
            (&["9/60s"], &[]),
            (&["9/60s", "99/1h"], &["%60000000"]),
            (&["9/30s", "99/1h"], &["%30000000"]),
            (&["9/30s"], &[]),
            (&["99/1h", "9/30s", "50/10m"], &["%30000000", "%600000000"]),
        ];
        check(&store, now, &rule("api", shapes[0].0, Algorithm::SlidingLog), 4).await;
        for (rates, others) in shapes {
            let rule = rule("api", rates, Algorithm::SlidingLog);
            store.change(now, &rule).await.unwrap();
            let others = others.iter().map(|other| format!("{NAME}{other}"));
            let names: Vec<_> =
                [NAME.to_owned()].into_iter().chain(others).chain([format!("{NAME}%state")]).collect();
            assert_eq!(watch.keys(), names, "{rates:?}");
            assert_eq!(used(&store, now, &rule).await, 4, "{rates:?}");
        }
    });
}

/// Redis deletes an emptied set: another algorithm finds no key and begins anew. Its state counts when the rule is a log
/// again.
#[test]
fn a_state_that_began_beside_an_emptied_set_is_taken_over() {
    let server = RedisServer::start();
    let logged = rule("api", &["5/60s"], Algorithm::SlidingLog);
    let counted = rule("api", &["5/60s"], Algorithm::SlidingCounter);
    run(async {
        let (store, now) =
            (prefixed(&server.url(), "sg", LogLayout::SortedSet).await, Call::at_us(BOUNDARY_US));
        check(&store, now, &logged, 4).await;
        store.update(now, Update::Credit(Charge::new(&logged, key("alice"), 4))).await.unwrap();
        assert!(check(&store, now, &counted, 3).await.allowed());
        assert_eq!(used(&store, now, &logged).await, 3);
        assert!(!check(&store, now, &logged, 3).await.allowed());
        store.change(now, &logged).await.unwrap();
        assert!(check(&store, now, &logged, 2).await.allowed());
        assert_eq!(used(&store, now, &logged).await, 5);
    });
}
