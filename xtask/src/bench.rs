//! `cargo xtask bench`: what a decision costs beside other limiters.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{self, cargo};
use crate::{packages, rivals};

/// Passes the arguments on to the program that measures.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match args {
        ["core", rest @ ..] => step::run(
            "bench core",
            core().args(rest),
            "what was measured is in target/bench/core.json; `cargo xtask bench core --help` lists the options",
        ),
        ["cli", rest @ ..] => cli(rest),
        ["http", rest @ ..] => http(rest),
        ["redis", rest @ ..] => step::run(
            "bench redis",
            redis().args(rest),
            "what was measured is in target/bench/redis.json; `cargo xtask bench redis --help` lists the options",
        ),
        ["table"] => table(core().arg("--table")),
        ["table", samples] if !samples.starts_with('-') => table(core().args(["--table", samples])),
        _ => {
            bail!(
                "`cargo xtask bench` needs to know which: `cargo xtask bench core`, `bench cli`, `bench http`, `bench redis` or \
                 `bench table [FILE]`"
            )
        }
    }
}

fn core() -> Command {
    cargo("run --release --package slidegate-bench --features rivals --bin core --")
}

/// The program is measured as it is released.
fn cli(args: &[&str]) -> Result<()> {
    if measures(args) {
        packages::install("this benchmark", packages::BENCH_CLI)?;
        build()?;
    }
    step::run(
        "bench cli",
        cargo("run --release --package slidegate-bench --bin cli --").args(args),
        "what was measured is in target/bench/cli.json; `cargo xtask bench cli --help` lists the options",
    )
}

/// Whether something is to be measured, and not only shown.
fn measures(args: &[&str]) -> bool {
    !args.iter().any(|arg| arg.starts_with("--table") || ["--help", "-h"].contains(arg))
}

fn build() -> Result<()> {
    step::run(
        "building slidegate",
        &mut cargo("build --release --package slidegate-server"),
        "fix what the compiler names",
    )
}

/// Servers are measured as they are released: ours is built, the other one installed from crates.io.
fn http(args: &[&str]) -> Result<()> {
    if measures(args) {
        packages::install("this benchmark", packages::BENCH_HTTP)?;
        rivals::install()?;
        build()?;
    }
    step::run(
        "bench http",
        cargo("run --release --package slidegate-bench --bin http --").args(args),
        "what was measured is in target/bench/http.json; `cargo xtask bench http --help` lists the options",
    )
}

fn redis() -> Command {
    cargo("run --release --package slidegate-bench --bin redis --")
}

fn table(command: &mut Command) -> Result<()> {
    let remedy = "measure with `cargo xtask bench core --large`, then `cargo xtask bench table target/bench/core.json`";
    step::run("bench table", command, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_is_not_there_is_answered_with_the_one_that_is() {
        for args in [&[][..], &["cores"], &["--quick"], &["table", "--quick"]] {
            assert!(run(args).unwrap_err().to_string().contains("`cargo xtask bench core`"), "{args:?}");
        }
    }
}
