//! `cargo xtask test`: what CI runs. `cargo xtask search`: the same searches, longer.

use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::Result;

use crate::step::{self, cargo};
use crate::{lint, node, packages, python, tidy};

/// Scales the searches of the tests, in percent.
pub(crate) const SEARCH: &str = "SLIDEGATE_SEARCH_PERCENT";
/// The server program that the Redis tests start.
const SERVER: &str = "SLIDEGATE_REDIS_SERVER";

/// Quick steps come first: an early failure costs little.
pub(crate) fn run() -> Result<()> {
    tidy::run()?;
    lint::format()?;
    packages::install("the tests", packages::TESTS)?;
    python::install()?;
    node::install()?;
    lint::clippy()?;
    step::run(
        "tests and documentation examples",
        // Without --all-targets, which would leave out the examples that tests start.
        &mut cargo_test("test --workspace"),
        "`cargo test -p CRATE NAME` runs one test alone",
    )?;
    on_other_servers("34")?;
    lint::rustdoc()?;
    println!("test: all steps passed");
    Ok(())
}

/// Runs every search at `percent` of its normal size, on every server.
pub(crate) fn search(percent: &str) -> Result<()> {
    packages::install("the tests", packages::TESTS)?;
    python::install()?;
    node::install()?;
    // Every search is named after what it compares with: the model, the bound, the classical script.
    let searches = [
        "differential::",
        "never_over::",
        "memory::",
        "judge::",
        "long_logs::",
        "answers_conform_to_the_openapi_document",
    ];
    step::run(
        "searches",
        cargo_test("test --workspace --tests --").args(searches).env(SEARCH, percent),
        "the failure names the seed; `SLIDEGATE_SEARCH_PERCENT=N cargo test -p CRATE NAME` repeats it",
    )?;
    on_other_servers(percent)
}

/// The Redis store's tests on other servers than the installed redis-server.
fn on_other_servers(percent: &str) -> Result<()> {
    for (name, program) in python::servers()? {
        step::run(
            &format!("the Redis store on {name}"),
            store_tests(&program).env(SEARCH, percent),
            &format!(
                "`{SERVER}={} cargo test -p slidegate-redis --test redis_store` repeats it",
                program.display()
            ),
        )?;
    }
    Ok(())
}

fn store_tests(program: &Path) -> Command {
    // With the features that the whole workspace chooses: nothing is compiled again.
    let mut command = cargo_test("test --workspace --test redis_store");
    command.env(SERVER, program);
    command
}

/// Tests. Many wait for a server or a disk, so there is one thread more than processors. A build from nothing is a
/// third faster without incremental compilation.
fn cargo_test(args: &str) -> Command {
    let threads = thread::available_parallelism().map_or(2, NonZero::get) + 1;
    let mut command = cargo(args);
    command.env("CARGO_INCREMENTAL", "0").env("RUST_TEST_THREADS", threads.to_string());
    command
}
