//! Tools from PyPI that tests hold the server to, in a folder of their own.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

const FOLDER: &str = "target/python";
/// What was installed, so that another version here is noticed.
const INSTALLED: &str = "target/python/installed.txt";
/// Pinned, because a newer version may judge differently.
const TOOLS: [&str; 2] = ["schemathesis==4.32.5", "prometheus_client==0.26.0"];

/// Installs what is not there yet.
pub(crate) fn install() -> Result<()> {
    let wanted = TOOLS.join("\n");
    if fs::read_to_string(INSTALLED).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("the tests need {}: installing into {FOLDER}", TOOLS.join(" and "));
    let remedy =
        format!("install by hand and try again: {} into a virtual environment at {FOLDER}", TOOLS.join(" "));
    step::run("python", Command::new("python3").args(["-m", "venv", FOLDER]), &remedy)?;
    let mut pip = Command::new(format!("{FOLDER}/bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(TOOLS);
    step::run("python packages", &mut pip, &remedy)?;
    fs::write(INSTALLED, wanted).with_context(|| format!("cannot write {INSTALLED}"))
}
