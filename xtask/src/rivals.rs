//! Installs the servers of other projects, which the benchmarks compare with, from crates.io.

use std::fs;

use anyhow::Result;

use crate::step::{self, cargo};

/// Pinned, because figures belong to one version.
const THROTTLECRAB_VERSION: &str = "0.4.40";
/// From the root of the repository, also if `CARGO_TARGET_DIR` is another folder.
const FOLDER: &str = "target/rivals";

/// Installs the servers that are missing.
pub(crate) fn install() -> Result<()> {
    let program = format!("{FOLDER}/bin/throttlecrab-server");
    // cargo lists the installed versions in this file.
    let installed = fs::read_to_string(format!("{FOLDER}/.crates.toml")).unwrap_or_default();
    let wanted = format!("throttlecrab-server {THROTTLECRAB_VERSION} ");
    if installed.contains(&wanted) && fs::exists(&program)? {
        return Ok(());
    }
    println!("{program} is missing: installing {THROTTLECRAB_VERSION}, which takes some minutes");
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
