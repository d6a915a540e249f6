//! The classical script as an independent judge of `sliding-log`: equal admissions and equal counts on random
//! traces, for any cost.

use crate::common::judge::{Judge, JudgeAnswer};
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, MemoryStore, Store};
use slidegate::testing::{Rng, search_covers_all, search_size};

const NAMES: [&str; 3] = ["alice", "bob", "carol"];
const REQUESTS: u64 = 500;

/// A rate, and the largest cost.
const LIMITS: [(&str, u64); 6] =
    [("1/1s", 1), ("5/10s", 5), ("50/10s", 3), ("300/1m", 100), ("1000/1h", 100), ("9500/24h", 100)];

/// Sends the same random requests to a store and to the judge. Time goes on from trace to trace: a store may delete
/// expired states, and the judge does not handle clocks that are set back.
async fn judged(store: &impl Store, judge: &mut Judge, seed: u64, at_us: &mut u64) -> (u64, u64) {
    let mut rng = Rng::new(seed);
    let &(rate, cost_max) = rng.pick(&LIMITS);
    let rule = rule(&format!("judged-{seed}"), &[rate], Algorithm::SlidingLog);
    let (limit, window_us) = (rule.cost_max(), rule.limits()[0].window_us());
    let (mut admitted, mut denied) = (0, 0);
    for request in 0..REQUESTS {
        *at_us += step_us(&mut rng, window_us, NAMES.len() as u64 * limit.div_ceil(cost_max));
        let (name, cost) = (*rng.pick(&NAMES), rng.between(1, cost_max));
        let decision = store.check(Call::at_us(*at_us), &admission(&[(&rule, name, cost)])).await.unwrap();
        let answer = JudgeAnswer { allowed: decision.allowed(), used: decision.used().unwrap() };
        let expected = judge.ask(&format!("{seed}:{name}"), *at_us, window_us, limit, cost);
        assert_eq!(answer, expected, "seed {seed}, {rate}, request {request}: {cost} for {name} at {at_us}");
        (admitted, denied) = (admitted + u64::from(expected.allowed), denied + u64::from(!expected.allowed));
    }
    (admitted, denied)
}

/// Mostly about the rate of the limit; many at one microsecond; some exactly a window apart, or one microsecond off.
fn step_us(rng: &mut Rng, window_us: u64, requests: u64) -> u64 {
    match rng.below(100) {
        0..=29 => 0,
        30 => *rng.pick(&[window_us - 1, window_us, window_us + 1]),
        31 => rng.below(window_us),
        32..=35 => rng.below(3),
        _ => rng.below(window_us / requests + 2),
    }
}

/// Runs many traces; both answers must occur often.
async fn agree(store: &impl Store, judge: &mut Judge) {
    let (mut admitted, mut denied, mut at_us) = (0, 0, BOUNDARY_US);
    let seeds = search_size(10);
    for seed in 0..seeds {
        let counts = judged(store, judge, seed, &mut at_us).await;
        (admitted, denied) = (admitted + counts.0, denied + counts.1);
    }
    let both_often = admitted > 125 * seeds && denied > 125 * seeds;
    assert!(both_often || !search_covers_all(), "{admitted} admitted, {denied} denied");
}

#[test]
fn every_layout_admits_and_counts_as_the_classical_script_does() {
    let server = RedisServer::start();
    run(async {
        for (_layout, store) in stores(&server.url()).await {
            server.command(&["FLUSHALL"]);
            agree(&store, &mut Judge::new(server.connection())).await;
        }
    });
}

#[test]
fn memory_admits_and_counts_as_the_classical_script_does() {
    let server = RedisServer::start();
    run(agree(&MemoryStore::new(), &mut Judge::new(server.connection())));
}
