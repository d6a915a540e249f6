//! `cargo xtask test`: what CI runs.

use anyhow::Result;

use crate::step::{self, cargo};
use crate::{lint, packages, python, tidy};

/// Cheap steps come first: what fails early costs little.
pub(crate) fn run() -> Result<()> {
    tidy::run()?;
    lint::format()?;
    packages::install("the tests", packages::TESTS)?;
    python::install()?;
    step::run(
        "tests",
        &mut cargo("test --workspace --all-targets"),
        "`cargo test -p CRATE NAME` runs one test alone",
    )?;
    step::run(
        "documentation examples",
        &mut cargo("test --workspace --doc"),
        "`cargo test -p CRATE --doc NAME` runs one example alone",
    )?;
    println!("test: all steps passed");
    Ok(())
}
