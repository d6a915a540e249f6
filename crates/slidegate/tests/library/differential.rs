//! The store equals the model, field by field, on seeded traces over all verbs that cover every case.

use crate::common::*;
use slidegate::store::MemoryStore;
use slidegate::testing::{Coverage, Rng, block_on, differential, trace};

/// Traces per algorithm: with 400 steps each they make 10^5 operations. `SLIDEGATE_SEEDS` sets another number.
fn seeds() -> u64 {
    std::env::var("SLIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(250)
}

#[test]
fn the_store_equals_the_model_and_every_case_is_covered() {
    let mut coverage = Coverage::default();
    for algorithm in trace::algorithms() {
        for seed in 0..seeds() {
            let store = MemoryStore::new();
            let judged = differential::run(&store, seed, algorithm, 400, &mut coverage);
            block_on(judged).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    let missing = coverage.missing(&trace::algorithms(), 10);
    assert!(missing.is_empty(), "cases that the traces hardly cover:\n{}", missing.join("\n"));
}

/// Sweeping idle keys changes no answer, as long as time moves forward.
#[test]
fn sweeping_changes_no_answer() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/1s", "20/10s"], algorithm);
        let (swept, kept) = (MemoryStore::new(), MemoryStore::new());
        let mut rng = Rng::new(5);
        let (mut now_us, mut dropped) = (BOUNDARY_US, 0);
        for _ in 0..3_000 {
            now_us += if rng.one_in(50) { rng.below(30 * SECOND_US) } else { rng.below(SECOND_US / 4) };
            dropped += swept.sweep(now_us);
            let request = admission(&[(&rule, *rng.pick(&["alice", "bob"]), rng.between(1, 3))]);
            let decision = swept.check(now_us, &request).unwrap();
            let expected = kept.check(now_us, &request).unwrap();
            assert_eq!(numbers(&decision), numbers(&expected), "{algorithm} at {now_us}");
        }
        assert!(dropped > 10, "{algorithm}: {dropped}");
    }
}
