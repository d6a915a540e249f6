//! Third-party programs that tests and benchmarks start: found, or installed.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::step;

/// A program, the command that finds it, and the packages that contain it.
pub(crate) struct Needed {
    probe: &'static [&'static str],
    packages: &'static [&'static str],
}

/// What the tests start.
pub(crate) const TESTS: &[Needed] = &[
    Needed { probe: &["redis-server", "--version"], packages: &["redis-server"] },
    Needed {
        probe: &["php", "-r", "exit(extension_loaded('redis') ? 0 : 1);"],
        packages: &["php-cli", "php-redis"],
    },
    Needed { probe: &["python3", "-c", "import ensurepip, venv"], packages: &["python3", "python3-venv"] },
    Needed { probe: &["node", "--version"], packages: &["nodejs"] },
    Needed { probe: &["npm", "--version"], packages: &["npm"] },
    Needed { probe: &["faketime", "--version"], packages: &["faketime"] },
];

/// What `bench cli` is measured beside.
pub(crate) const BENCH_CLI: &[Needed] =
    &[Needed { probe: &["sqlite3", "--version"], packages: &["sqlite3"] }];

/// What `bench http` starts, and what compiles the server that it compares with.
pub(crate) const BENCH_HTTP: &[Needed] = &[
    // It has no option that only asks for its version: that ends with a failure.
    Needed { probe: &["sh", "-c", "command -v wrk"], packages: &["wrk"] },
    Needed { probe: &["protoc", "--version"], packages: &["protobuf-compiler"] },
];

/// What `bench outage` starts.
pub(crate) const BENCH_OUTAGE: &[Needed] = &[
    Needed { probe: &["redis-server", "--version"], packages: &["redis-server"] },
    Needed { probe: &["sh", "-c", "command -v wrk"], packages: &["wrk"] },
];

/// Installs what is missing if this user may install packages, and says so; otherwise it
/// fails and names the packages: a skipped test proves nothing.
pub(crate) fn install(who: &str, needed: &[Needed]) -> Result<()> {
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !runs(&["apt-get", "--version"]) || !is_root() {
        bail!("{who}: programs are not there; as root: `apt-get install {names}`");
    }
    println!("{who}: installing {names} with apt-get");
    let remedy = format!("install by hand and try again: {names}");
    step::run("package lists", apt_get().arg("update"), &remedy)?;
    step::run(
        "packages",
        apt_get().args(["install", "--yes", "--no-install-recommends"]).args(&missing),
        &remedy,
    )
}

fn missing(needed: &[Needed]) -> Vec<&'static str> {
    needed.iter().filter(|needed| !runs(needed.probe)).flat_map(|needed| needed.packages).copied().collect()
}

/// Whether a command can be started and succeeds.
fn runs(words: &[&str]) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_started_or_fails_is_missing() {
        let needed =
            |probe: &'static [&'static str], packages: &'static [&'static str]| Needed { probe, packages };
        let all = [
            needed(&["true"], &["there"]),
            needed(&["no-such-program"], &["one", "two"]),
            needed(&["false"], &["three"]),
        ];
        assert_eq!(missing(&all), ["one", "two", "three"]);
    }
}
