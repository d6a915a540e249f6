//! The store equals the model, field by field, on seeded traces over all verbs; every case was met.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

use slidegate::testing::{Coverage, differential, trace};

#[test]
fn the_store_equals_the_model_and_every_cell_was_met() {
    let mut coverage = Coverage::default();
    for algorithm in trace::algorithms() {
        for seed in 0..60 {
            differential::run(seed, algorithm, 400, &mut coverage).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    let missing = coverage.missing(&trace::algorithms(), 10);
    assert!(missing.is_empty(), "cells that the traces hardly met:\n{}", missing.join("\n"));
}
