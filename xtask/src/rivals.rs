//! Servers of others that we are measured beside, installed from crates.io.

use std::fs;

use anyhow::Result;

use crate::step::{self, cargo};

/// Pinned, because figures are of one version.
const THROTTLECRAB_VERSION: &str = "0.4.40";
/// From the root of the repository, whichever folder we build to.
const FOLDER: &str = "target/rivals";

/// Compiles what is not there yet.
pub(crate) fn install() -> Result<()> {
    let program = format!("{FOLDER}/bin/throttlecrab-server");
    // What cargo installed and which version is in this file.
    let installed = fs::read_to_string(format!("{FOLDER}/.crates.toml")).unwrap_or_default();
    let wanted = format!("throttlecrab-server {THROTTLECRAB_VERSION} ");
    if installed.contains(&wanted) && fs::exists(&program)? {
        return Ok(());
    }
    println!("{program} is not there: installing {THROTTLECRAB_VERSION}, which takes some minutes");
    step::run(
        "installing throttlecrab-server",
        cargo("install --locked throttlecrab-server --version").args([
            THROTTLECRAB_VERSION,
            "--root",
            FOLDER,
        ]),
        "install it by hand there and try again",
    )
}
