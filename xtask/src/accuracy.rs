//! `cargo xtask accuracy`: the measured tables of docs/accuracy.md.

use anyhow::Result;

use crate::step::{self, cargo};

/// Passes the arguments on to the program that measures.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    step::run(
        "accuracy",
        cargo("run --release --package slidegate-bench --bin accuracy --").args(args),
        "after a change of an algorithm that is meant, run `cargo xtask accuracy` and read the difference",
    )
}
