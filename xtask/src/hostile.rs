//! `cargo xtask hostile`: attacks on the real program.

use anyhow::Result;

use crate::packages;
use crate::step::{self, cargo};

/// Runs all attacks in full, with these arguments. In the dev profile: its assertions watch the attacked code too.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    packages::install("the attacks", packages::TESTS)?;
    step::run(
        "hostile",
        cargo("test --package slidegate-server --test hostile -- --full").args(args),
        "an attack that did not hold is named above, with the command that repeats it",
    )
}
