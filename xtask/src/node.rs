//! Packages from npm that the tests need, in a directory of their own.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

const DIRECTORY: &str = "target/node";
/// What was installed, so that a changed version is noticed.
const INSTALLED: &str = "target/node/installed.txt";
/// The client of Redis that the example in Node uses.
const PACKAGE: &str = "ioredis@5.9.2";

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    if fs::read_to_string(INSTALLED).is_ok_and(|installed| installed == PACKAGE) {
        return Ok(());
    }
    println!("the tests need {PACKAGE}: installing into {DIRECTORY}");
    fs::create_dir_all(DIRECTORY).with_context(|| format!("cannot create {DIRECTORY}"))?;
    step::run(
        "node packages",
        Command::new("npm").args(["install", "--no-audit", "--no-fund", "--prefix", DIRECTORY, PACKAGE]),
        &format!("install {PACKAGE} by hand into {DIRECTORY} and try again"),
    )?;
    fs::write(INSTALLED, PACKAGE).with_context(|| format!("cannot write {INSTALLED}"))
}
