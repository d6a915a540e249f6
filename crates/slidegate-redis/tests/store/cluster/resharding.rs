//! Slots that move under load, and slots that nobody owns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{options_of, store_in};
use crate::common::*;
use crate::faults::{PLENTY, under_load};
use slidegate::rule::OnStoreError;
use slidegate::store::{Call, Store, StoreError};
use slidegate::{Algorithm, CheckError, Limiter, Rule};
use slidegate_redis::RedisStore;

/// How often the slot moves on, and how long each step of a move takes at least.
const MOVES: usize = 6;
const STEP: Duration = Duration::from_millis(15);

/// Callers that ask for two rules at once. Their admission has two keys, for which a node of a moving slot answers
/// TRYAGAIN until it has both.
async fn ask_for_both(store: Arc<RedisStore>, rules: Arc<[Rule; 2]>, stop: Arc<AtomicBool>) -> Tally {
    let mut tally = Tally::default();
    while !stop.load(Ordering::SeqCst) {
        let both = admission(&[(&rules[0], "alice", 1), (&rules[1], "alice", 1)]);
        tally.count(store.check(Call::now(), &both).await);
    }
    tally
}

/// The slot of alice goes round the three nodes. Each caller is answered, and every answer is right: nothing is lost,
/// nothing is charged twice.
async fn nothing_is_lost_or_charged_twice(cluster: &Arc<RedisCluster>) {
    let store = Arc::new(store_in(cluster).await);
    let single = Arc::new(rule("single", &[PLENTY], Algorithm::SlidingLog));
    let both = Arc::new(["first", "second"].map(|name| rule(name, &[PLENTY], Algorithm::SlidingCounter)));
    let scarce = Arc::new(rule("scarce", &["300/400d"], Algorithm::Gcra));
    let stop = Arc::new(AtomicBool::new(false));
    let moves = {
        let (cluster, stop) = (Arc::clone(cluster), Arc::clone(&stop));
        tokio::task::spawn_blocking(move || {
            let (slot, mut owner) = (cluster.slot("alice"), cluster.primary_of("alice"));
            for _ in 0..MOVES {
                cluster.move_slot(slot, owner, (owner + 1) % 3, STEP);
                owner = (owner + 1) % 3;
            }
            stop.store(true, Ordering::SeqCst);
        })
    };
    let (alone, together, scarcely, finished) = tokio::join!(
        tally::until(&store, &single, 4, &stop),
        ask_for_both(Arc::clone(&store), Arc::clone(&both), Arc::clone(&stop)),
        tally::until(&store, &scarce, 2, &stop),
        moves
    );
    finished.unwrap();
    for tally in [&alone, &together, &scarcely] {
        tally.assert_answered();
    }
    assert!(alone.admitted > 100 && together.admitted > 10, "{alone:?}, {together:?}");
    assert_eq!(used(&*store, Call::now(), &single).await, alone.admitted);
    for rule in &*both {
        assert_eq!(used(&*store, Call::now(), rule).await, together.admitted);
    }
    assert_eq!(scarcely.admitted, 300, "exactly the limit");
}

/// Connections break under load. What was sent without a reply is not sent again, to no node.
async fn broken_connections_charge_nothing_twice(cluster: &RedisCluster) {
    let store = Arc::new(store_in(cluster).await);
    let rule = Arc::new(rule("broken", &[PLENTY], Algorithm::SlidingLog));
    let kill = || {
        for node in cluster.nodes() {
            node.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        }
    };
    let tally = under_load(&store, &rule, 30, kill).await;
    assert!(tally.admitted > 30, "{tally:?}");
    tally.assert_charged(used(&*store, Call::now(), &rule).await);
}

/// A slot without an owner is a failure of the store, which the outage policy answers; other slots work.
async fn slots_without_an_owner_are_a_failure(cluster: &RedisCluster) {
    let slot = cluster.slot("nobody").to_string();
    for node in cluster.nodes() {
        // Each node forgets what it has heard of the owner.
        node.command(&["CLUSTER", "DELSLOTS", &slot]);
    }
    let options = options_of(cluster).0.deadline(Duration::from_millis(200)).unwrap();
    let limiter = Limiter::new(RedisStore::lazy(&options).unwrap());
    let api = Rule::new("api", "5/1h").unwrap();
    let error = limiter.check_async(&api, "nobody").await.unwrap_err();
    assert!(matches!(error, CheckError::Store(StoreError::Unavailable { .. })), "{error}");
    assert!(error.to_string().contains("slot"), "{error}");
    let open = limiter.with_outage_policy(OnStoreError::Allow);
    assert!(open.check_async(&api, "nobody").await.unwrap().degraded());
    assert!(limiter.check_async(&api, "alice").await.unwrap().allowed());
}

/// One cluster for all three, because the others of this process must not see it.
#[test]
fn slots_move_connections_break_and_owners_vanish() {
    let cluster = Arc::new(RedisCluster::start(false, &["--cluster-require-full-coverage", "no"]));
    run(async {
        nothing_is_lost_or_charged_twice(&cluster).await;
        broken_connections_charge_nothing_twice(&cluster).await;
        slots_without_an_owner_are_a_failure(&cluster).await;
    });
}
