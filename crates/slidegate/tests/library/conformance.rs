//! The conformance suite on several stores, and faulty stores that it must reject.

use crate::stores::{Fault, FaultyStore, ModelBackedStore};
use slidegate::store::MemoryStore;
use slidegate::testing::{block_on, conformance};
use slidegate::time::ManualClock;

#[test]
fn the_memory_store_keeps_every_promise() {
    block_on(conformance::all(&async || MemoryStore::new())).unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn a_store_uses_the_clock_that_it_is_given() {
    let fresh = async || MemoryStore::with_clock(ManualClock::at_us(1_745_000_145_000_000));
    block_on(conformance::calls_without_a_time_use_the_stores_clock(&fresh))
        .unwrap_or_else(|broken| panic!("{broken}"));
}

/// A store written against the public traits alone, with other receipts, that never drops states.
#[test]
fn the_model_backed_store_keeps_every_promise() {
    block_on(conformance::all(&async || ModelBackedStore::new())).unwrap_or_else(|broken| panic!("{broken}"));
}

/// The promises that a faulty store breaks, by name.
fn broken_promises(fault: Fault) -> Vec<String> {
    let Err(broken) = block_on(conformance::all(&async || FaultyStore::new(fault))) else {
        return Vec::new();
    };
    let names = broken.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name.to_owned());
    names.collect()
}

fn assert_breaks(fault: Fault, promises: &[&str]) {
    let broken = broken_promises(fault);
    for promise in promises {
        assert!(broken.iter().any(|name| name == promise), "{fault:?} keeps {promise}; broken: {broken:?}");
    }
}

#[test]
fn a_wrapper_without_a_fault_passes() {
    assert_eq!(broken_promises(Fault::Nothing), Vec::<String>::new());
}

#[test]
fn a_store_that_charges_on_deny_is_rejected() {
    assert_breaks(Fault::ChargesOnDeny, &["denials_change_nothing", "equals_the_model"]);
}

#[test]
fn a_store_that_forgets_refunds_is_rejected() {
    let promises = ["refunds_work_once", "expired_receipts_give_nothing", "equals_the_model"];
    assert_breaks(Fault::ForgetsRefunds, &promises);
}

#[test]
fn a_store_that_rounds_waits_is_rejected() {
    assert_breaks(Fault::RoundsWaits, &["waits_are_exact", "equals_the_model"]);
}

#[test]
fn a_store_that_charges_one_by_one_is_rejected() {
    let promises = ["several_charges_pass_together_or_not_at_all", "equals_the_model"];
    assert_breaks(Fault::ChargesOneByOne, &promises);
}

#[test]
fn a_store_that_keeps_its_own_time_is_rejected() {
    assert_breaks(
        Fault::KeepsItsOwnTime,
        &["worked_example_3", "a_clock_that_jumps_ahead_expires_entries", "equals_the_model"],
    );
}
