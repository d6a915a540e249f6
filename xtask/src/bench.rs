//! `cargo xtask bench`: measures the cost of a decision beside other limiters.

use std::process::Command;

use anyhow::{Result, bail};

use crate::step::{self, cargo};
use crate::{packages, rivals};

/// Runs the benchmark that the first argument names, with the other arguments.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match args {
        ["core", rest @ ..] => step::run(
            "bench core",
            core().args(rest),
            "the samples are in target/bench/core.json; `cargo xtask bench core --help` lists the options",
        ),
        ["cli", rest @ ..] => cli(rest),
        ["http", rest @ ..] => http(rest),
        ["outage", rest @ ..] => outage(rest),
        ["redis", rest @ ..] => step::run(
            "bench redis",
            redis().args(rest),
            "the samples are in target/bench/redis.json; `cargo xtask bench redis --help` lists the options",
        ),
        ["cluster", rest @ ..] => step::run(
            "bench cluster",
            cargo("run --release --package slidegate-bench --bin cluster --").args(rest),
            "the samples are in target/bench/cluster.json; `cargo xtask bench cluster --help` lists the options",
        ),
        ["table"] => table(core().arg("--table")),
        ["table", samples] if !samples.starts_with('-') => table(core().args(["--table", samples])),
        _ => {
            bail!(
                "`cargo xtask bench` needs the name of a benchmark: `cargo xtask bench core`, `bench cli`, `bench http`, `bench outage`, `bench redis`, `bench cluster` or \
                 `bench table [FILE]`"
            )
        }
    }
}

fn core() -> Command {
    cargo("run --release --package slidegate-bench --features rivals --bin core --")
}

/// Measures the release build of the program.
fn cli(args: &[&str]) -> Result<()> {
    if is_measurement(args) {
        packages::install("this benchmark", packages::BENCH_CLI)?;
        build()?;
    }
    step::run(
        "bench cli",
        cargo("run --release --package slidegate-bench --bin cli --").args(args),
        "the samples are in target/bench/cli.json; `cargo xtask bench cli --help` lists the options",
    )
}

/// Whether the arguments measure something, and not only print or publish.
fn is_measurement(args: &[&str]) -> bool {
    !args.iter().any(|arg| arg.starts_with("--table") || ["--help", "-h"].contains(arg))
}

fn build() -> Result<()> {
    step::run(
        "building slidegate",
        &mut cargo("build --release --package slidegate-server"),
        "fix the errors of the compiler",
    )
}

/// Measures release builds: slidegate is built, throttlecrab-server installed from crates.io.
fn http(args: &[&str]) -> Result<()> {
    if is_measurement(args) {
        packages::install("this benchmark", packages::BENCH_HTTP)?;
        rivals::install()?;
        build()?;
    }
    step::run(
        "bench http",
        cargo("run --release --package slidegate-bench --bin http --").args(args),
        "the samples are in target/bench/http.json; `cargo xtask bench http --help` lists the options",
    )
}

/// Measures the release build of the program, and a limiter over Redis.
fn outage(args: &[&str]) -> Result<()> {
    if is_measurement(args) {
        packages::install("this benchmark", packages::BENCH_OUTAGE)?;
        build()?;
    }
    step::run(
        "bench outage",
        cargo("run --release --package slidegate-bench --bin outage --").args(args),
        "the samples are in target/bench/outage.json; `cargo xtask bench outage --help` lists the options",
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
    fn an_unknown_benchmark_is_refused_with_the_list() {
        for args in [&[][..], &["cores"], &["--quick"], &["table", "--quick"]] {
            assert!(run(args).unwrap_err().to_string().contains("`cargo xtask bench core`"), "{args:?}");
        }
    }
}
