//! Seeded traces over all verbs give the answers of the model, field by field, as the store in memory does on the same
//! traces.

use crate::common::*;
use slidegate::testing::{Coverage, block_on, differential, trace};

const STEPS: usize = 400;

/// Traces per algorithm: of [`STEPS`] each they make 24,000 operations. `SLIDEGATE_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("SLIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60)
}

#[test]
fn the_durable_store_equals_the_model_and_every_cell_was_met() {
    let (directory, algorithms) = (Directory::new(), trace::algorithms());
    let mut coverage = Coverage::default();
    for &algorithm in &algorithms {
        for seed in 0..seeds() {
            let path = directory.path().join("trace.db");
            let store = open(&path);
            let judged = differential::run(&store, seed, algorithm, STEPS, &mut coverage);
            block_on(judged).unwrap_or_else(|wrong| panic!("{wrong}"));
            drop(store);
            for suffix in ["", "-wal", "-shm"] {
                std::fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
            }
        }
    }
    let missing = coverage.missing(&algorithms, 10);
    assert!(missing.is_empty(), "cells that the traces hardly met:\n{}", missing.join("\n"));
}
