//! The suite that every store must pass; the worked examples are part of it. `differential.rs` compares with the model.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Directory, open};
use slidegate::testing::{block_on, conformance};
use slidegate::time::ManualClock;

#[test]
fn the_durable_store_passes_the_conformance_suite() {
    let (directory, stores) = (Directory::new(), AtomicU64::new(0));
    let fresh = async || {
        let number = stores.fetch_add(1, Ordering::Relaxed);
        open(directory.path().join(format!("{number}.db")))
    };
    block_on(conformance::promises(&fresh)).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_store_uses_the_clock_it_was_given() {
    let directory = Directory::new();
    let fresh = async || open(directory.file()).on_clock(ManualClock::at_us(1_745_000_145_000_000));
    block_on(conformance::calls_without_a_time_use_the_stores_clock(&fresh))
        .unwrap_or_else(|broken| panic!("{broken}"));
}
