//! A denial writes nothing: the bytes and modification times of all files stay the same.

use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, Store};
use slidegate::testing::block_on;

#[test]
fn rows_01_and_07_a_thousand_denials_leave_the_files_as_they_were() {
    for algorithm in Algorithm::ALL {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &["100/400d", "500/300d"], algorithm));
        check(&store, Call::now(), &rule, 40);
        check(&store, Call::now(), &rule, 20);
        let before = everything(directory.path());
        assert!(before.len() == 2, "the database and its log: {:?}", before.keys());
        for cost in 0..1_000 {
            let decision = check(&store, Call::now(), &rule, 41 + cost % 60);
            assert!(!decision.allowed() && decision.receipt().is_none(), "{algorithm}");
        }
        for cost in 1..=100 {
            assert_eq!(peek(&store, Call::now(), &rule, cost).allowed(), cost <= 40, "{algorithm}: {cost}");
        }
        // Also by stores that open and close the file.
        for _ in 0..20 {
            let other = open(directory.file());
            assert!(!check(&other, Call::now(), &rule, 41).allowed(), "{algorithm}");
            assert_eq!(used(&other, Call::now(), &rule), 60, "{algorithm}");
        }
        drop(store);
        assert!(
            everything(directory.path()) == before,
            "{algorithm}: a denial, a peek or an inspect has written"
        );
        assert!(check(&open(directory.file()), Call::now(), &rule, 40).allowed(), "{algorithm}");
    }
}

/// One rule admits and another denies: nothing is written for either, wherever the denial stands.
#[test]
fn row_19_a_denial_of_one_charge_writes_nothing_for_the_others() {
    let directory = Directory::new();
    let store = open(directory.file());
    let quota = rule("quota", &["1000/400d"], Algorithm::SlidingLog);
    let search = rule("search", &["5/400d"], Algorithm::SlidingLog);
    check(&store, Call::now(), &search, 5);
    let before = everything(directory.path());
    for asks in [
        &[(&search, "alice", 1), (&quota, "alice", 1)][..],
        &[(&quota, "alice", 1), (&search, "alice", 1)],
        &[(&quota, "bob", 1), (&search, "alice", 1), (&quota, "alice", 1)],
    ] {
        let decision = block_on(store.check(Call::now(), &admission(asks))).unwrap();
        assert_eq!((decision.allowed(), decision.rule()), (false, "search"));
    }
    assert!(everything(directory.path()) == before);
}
