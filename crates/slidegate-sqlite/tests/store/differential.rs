//! Seeded traces over all verbs: the answers equal those of the model, field by field.

use crate::common::*;
use slidegate::testing::{Coverage, block_on, differential, search_size, trace};

const STEPS: usize = 400;
/// Traces per algorithm and parameters.
const TRACES: u64 = 12;

fn equals_the_model(name: &str) {
    let algorithms: Vec<_> = trace::algorithms().into_iter().filter(|a| a.name() == name).collect();
    let (directory, mut coverage) = (Directory::new(), Coverage::default());
    for &algorithm in &algorithms {
        for seed in 0..search_size(TRACES) {
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
    assert_covers_all(&coverage, &algorithms, &[]);
}

mod the_durable_store_equals_the_model_and_the_traces_cover_every_cell {
    crate::common::test_each_algorithm!(super::equals_the_model);
}
