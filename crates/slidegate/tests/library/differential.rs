//! The store equals the model, field by field, on seeded traces over all verbs that cover every case.

use crate::common::*;
use slidegate::store::MemoryStore;
use slidegate::testing::{Coverage, Rng, block_on, differential, search_size, trace};

/// Traces per algorithm and parameters, of 400 steps each.
const TRACES: u64 = 24;

fn equals_the_model(name: &str) {
    let algorithms: Vec<_> = trace::algorithms().into_iter().filter(|a| a.name() == name).collect();
    let mut coverage = Coverage::default();
    for &algorithm in &algorithms {
        for seed in 0..search_size(TRACES) {
            let store = MemoryStore::new();
            let judged = differential::run(&store, seed, algorithm, 400, &mut coverage);
            block_on(judged).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    assert_covers_all(&coverage, &algorithms, &[]);
}

mod the_store_equals_the_model_and_every_case_is_covered {
    crate::common::test_each_algorithm!(super::equals_the_model);
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
