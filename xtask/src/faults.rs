//! `cargo xtask faults`: faults of the store under the real program.

use anyhow::Result;

use crate::packages;
use crate::step::{self, cargo};

/// Runs all trials in full, with these arguments. In the release profile: they measure times.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    packages::install("the faults", packages::TESTS)?;
    step::run(
        "faults",
        cargo("test --release --package slidegate-server --test faults -- --full").args(args),
        "a trial that did not hold is named above, with the command that repeats it",
    )
}
