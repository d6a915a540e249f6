//! The store on one file: conformance, many processes, power losses, and invalid files.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unreachable_pub, reason = "nothing of a test program is reachable from outside")]

mod common;

mod async_calls;
mod clock_steps;
mod clocks;
mod conformance;
mod denials;
mod differential;
mod files;
mod limiter;
mod memory;
mod power_loss;
mod processes;
mod replaced;

/// Tests start this program again by this name, with orders.
#[test]
fn as_a_child() {
    common::child::run_child();
}
