//! Killed connections and restarted servers under load: only documented errors, and nothing charged twice:
//! admitted <= used <= admitted + ambiguous.

use std::sync::Arc;

use crate::common::*;
use crate::faults::{PAUSE, PLENTY, algorithms, under_load};
use slidegate::store::{Call, Store};
use slidegate::{Algorithm, Rule};

/// Calls until the first admission: the store reconnects without help.
async fn recovered(store: &impl Store, rule: &Rule) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..1_000 {
        tally.count(ask(store, Call::now(), rule, 1).await);
        if tally.admitted > 0 {
            return tally;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("no answer although the server runs: {tally:?}");
}

#[test]
fn killed_connections_charge_nothing_twice() {
    for algorithm in algorithms() {
        let server = RedisServer::start();
        let rule = Arc::new(rule("api", &[PLENTY], algorithm));
        run(async {
            let store = Arc::new(store(&server.url()).await);
            let mut watch = ServerWatch::new(&server);
            let kill = || drop(watch.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]));
            let tally = under_load(&store, &rule, 50, kill).await;
            let tally = tally.join(recovered(&*store, &rule).await);
            assert!(tally.admitted > 50, "{algorithm}: {tally:?}");
            tally.assert_charged(used(&*store, Call::now(), &rule).await);
        });
    }
}

/// With every write on disk before its reply, a crash loses no admission.
#[test]
fn a_restarted_server_charges_nothing_twice() {
    for algorithm in algorithms() {
        let mut server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
        let rule = Arc::new(rule("api", &[PLENTY], algorithm));
        run(async {
            let store = Arc::new(store(&server.url()).await);
            let tally = under_load(&store, &rule, 3, || server.restart()).await;
            let tally = tally.join(recovered(&*store, &rule).await);
            tally.assert_charged(used(&*store, Call::now(), &rule).await);
        });
    }
}

/// A restart without persistence loses all states, which is no error.
#[test]
fn a_server_that_lost_its_data_is_used_on() {
    let mut server = RedisServer::start();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    run(async {
        let store = store(&server.url()).await;
        check(&store, Call::now(), &rule, 5).await;
        server.restart();
        let tally = recovered(&store, &rule).await;
        tally.assert_charged(used(&store, Call::now(), &rule).await);
    });
}
