//! The store on one file: its promises, many processes, power cuts, and files that are not what they should be.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod common;

mod clocks;
mod conformance;
mod denials;
mod differential;
mod files;
mod limiter;
mod memory;
mod power;
mod processes;
mod tasks;

/// By this name tests start the program again, with orders.
#[test]
fn as_a_child() {
    common::child::obey();
}
