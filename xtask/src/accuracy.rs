//! `cargo xtask accuracy`: the measured tables of docs/accuracy.md.

use anyhow::Result;

use crate::step::{self, cargo};

/// Passes the arguments on to the program that measures. Where it only checks, it is built as the tests are: most of it
/// has been compiled for them already.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let profile = if args.contains(&"--check") { "test" } else { "release" };
    step::run(
        "accuracy",
        cargo(&format!("run --profile {profile} --package slidegate-bench --bin accuracy --")).args(args),
        "after a change of an algorithm that is meant, run `cargo xtask accuracy` and read the difference",
    )
}
