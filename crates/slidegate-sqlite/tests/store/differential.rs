//! Seeded traces over all verbs: the answers equal those of the model, field by field.

use crate::common::*;
use slidegate::testing::{Coverage, block_on, differential, trace};

const STEPS: usize = 400;

/// Traces per algorithm: with [`STEPS`] each they make 24,000 operations.
const TRACES: u64 = 60;
/// How often [`TRACES`] traces must cover each cell at least.
const COVERED_MIN: u64 = 10;

/// `SLIDEGATE_SEEDS` overrides the number of traces.
fn traces() -> u64 {
    std::env::var("SLIDEGATE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(TRACES)
}

#[test]
fn the_durable_store_equals_the_model_and_the_traces_cover_every_cell() {
    let (directory, algorithms) = (Directory::new(), trace::algorithms());
    let mut coverage = Coverage::default();
    for &algorithm in &algorithms {
        for seed in 0..traces() {
            let path = directory.path().join("trace.db");
            let store = open(&path);
            let judged = differential::run(&store, seed, algorithm, STEPS, &mut coverage);
            block_on(judged).unwrap_or_else(|difference| panic!("{difference}"));
            drop(store);
            for suffix in ["", "-wal", "-shm"] {
                std::fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
            }
        }
    }
    let missing = coverage.missing(&algorithms, (COVERED_MIN * traces() / TRACES).min(COVERED_MIN));
    assert!(missing.is_empty(), "cells that the traces hardly cover:\n{}", missing.join("\n"));
}
