//! `cargo xtask accuracy`: measures the tables of docs/accuracy.md.

use anyhow::Result;

use crate::step::{self, cargo};

/// Runs the benchmark `accuracy` with these arguments.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    step::run(
        "accuracy",
        cargo("run --release --package slidegate-bench --bin accuracy --").args(args),
        "after an intended change of an algorithm run `cargo xtask accuracy` and read the difference",
    )
}
