//! The cost of one decision on a shared Redis in time and memory, beside the classical sorted set.
//!
//! One redis-server, started for the run. Subjects take turns in slices of the same length, with the same number of
//! callers over the same number of connections, so that a noisy second of the machine affects all of them. Time is
//! injected: it advances from call to call, so that every key has the live requests of the scenario.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod drive;
mod info;
mod memory;
mod options;
mod published;
mod report;
mod results;
mod runner;
mod sample;
mod scenario;
#[path = "../../../crates/slidegate-redis/tests/store/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with tests, which also restart it")]
mod server;
mod subject;
mod summary;

use clap::Parser;

use options::Options;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(samples) = &options.table {
        published::PUBLISHED.publish(samples)?;
        return Ok(());
    }
    runner::run(&options)
}
