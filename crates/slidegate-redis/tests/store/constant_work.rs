//! The work of a call does not grow with the cost or the limit. Counted in commands and bytes, not in time.

use crate::common::*;
use slidegate::store::{Call, Store};
use slidegate::{Algorithm, Rule};

/// The number of commands in the script of one call.
async fn commands(store: &impl Store, watch: &mut ServerWatch, rule: &Rule, at_us: u64, cost: u64) -> u64 {
    watch.reset_calls();
    check(store, Call::at_us(at_us), rule, cost).await;
    watch.calls().values().sum()
}

/// With one element per unit, 10,000 units would take ten thousand times as long.
#[test]
fn row_14_ten_thousand_units_cost_what_one_costs() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let store = store(&server.url()).await;
        for algorithm in every_algorithm() {
            watch.command(&["FLUSHALL"]);
            let rule = rule("api", &["1000000/1h"], algorithm);
            // The first call loads the script.
            check(&store, Call::at_us(BOUNDARY_US), &rule, 1).await;
            let one = commands(&store, &mut watch, &rule, BOUNDARY_US + 1, 1).await;
            let size = watch.size();
            let many = commands(&store, &mut watch, &rule, BOUNDARY_US + 2, 10_000).await;
            assert!(one > 0 && many <= one, "{algorithm}: {one} commands for one unit, {many} for 10,000");
            let grown = watch.size() - size;
            assert!(grown <= 64, "{algorithm}: 10,000 units grew the value by {grown} bytes");
        }
    });
}

/// A script that walks all entries would get slower with every request.
#[test]
fn row_14_a_full_key_costs_what_an_empty_one_costs() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let store = store(&server.url()).await;
        for algorithm in every_algorithm() {
            watch.command(&["FLUSHALL"]);
            let (small, large) =
                (saturated(&store, "100/1h", algorithm).await, saturated(&store, "1000/1h", algorithm).await);
            let [small, large] = [small, large].map(|(rule, at_us)| (rule, at_us));
            let few = commands(&store, &mut watch, &small.0, small.1, 1).await;
            let many = commands(&store, &mut watch, &large.0, large.1, 1).await;
            // A binary search in 1,000 entries reads 10 of them.
            assert!(many <= few + 11, "{algorithm}: {few} commands at 100 entries, {many} at 1,000");
        }
    });
}

/// A key that has used its whole limit in single units, and the instant of the next request.
async fn saturated(store: &impl Store, rate: &str, algorithm: Algorithm) -> (Rule, u64) {
    let rule = rule(&format!("api-{}", rate.replace('/', "-")), &[rate], algorithm);
    let (limit, window_us) = (rule.cost_max(), rule.limits()[0].window_us());
    let step_us = window_us / limit;
    let request = admission(&[(&rule, "alice", 1)]);
    for number in 0..limit {
        let when = Call::at_us(BOUNDARY_US + number * step_us);
        store.check(when, &request).await.unwrap();
    }
    drop(request);
    (rule, BOUNDARY_US + window_us)
}
