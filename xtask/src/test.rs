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
        // Without --all-targets, which would leave out the examples that tests start.
        &mut cargo("test --workspace"),
        "`cargo test -p CRATE NAME` runs one test alone",
    )?;
    println!("test: all steps passed");
    Ok(())
}
