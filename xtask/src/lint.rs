//! `cargo xtask lint`: checks of the code that do not run it.

use std::process::Stdio;

use anyhow::Result;

use crate::step::{self, cargo};
use crate::tidy;

/// Pinned, because a newer cargo-deny may read `deny.toml` differently.
const DENY_VERSION: &str = "0.20.2";

/// Whether to ask the `RustSec` database, which needs the network and changes from day to day: the same
/// commit must not pass today and fail tomorrow unless that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advisories {
    Skip,
    Ask,
}

pub(crate) fn run(advisories: Advisories) -> Result<()> {
    tidy::run()?;
    format()?;
    clippy()?;
    step::run(
        "clippy of bench core",
        &mut cargo("clippy --package slidegate-bench --all-targets --all-features -- -D warnings"),
        "follow the lint; these are the parts behind the feature `rivals`",
    )?;
    rustdoc()?;
    install_deny()?;
    step::run(
        "dependencies",
        &mut cargo("deny check bans licenses sources"),
        "choose another dependency, or give deny.toml an entry with its reason",
    )?;
    if advisories == Advisories::Ask {
        step::run(
            "advisories",
            &mut cargo("deny check advisories"),
            "update the dependency that is named: `cargo update -p NAME`",
        )?;
    }
    println!("lint: all steps passed");
    Ok(())
}

pub(crate) fn format() -> Result<()> {
    step::run("formatting", &mut cargo("fmt --all -- --check"), "run `cargo fmt --all`")
}

pub(crate) fn clippy() -> Result<()> {
    step::run(
        "clippy",
        &mut cargo("clippy --workspace --all-targets -- -D warnings"),
        "follow the lint, or `#[expect(..., reason = \"...\")]` it where it is wrong",
    )
}

pub(crate) fn rustdoc() -> Result<()> {
    step::run(
        "rustdoc",
        cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"),
        "fix the links and examples that rustdoc names",
    )
}

fn install_deny() -> Result<()> {
    let probe = cargo("deny --version").stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if probe.success() {
        return Ok(());
    }
    println!("cargo-deny is not there: installing {DENY_VERSION}, which takes some minutes");
    step::run(
        "installing cargo-deny",
        cargo("install --locked cargo-deny --version").arg(DENY_VERSION),
        "install it by hand and try again",
    )
}
