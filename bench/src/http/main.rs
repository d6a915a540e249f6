//! What one decision over HTTP costs, in time, processor and memory, beside throttlecrab-server.
//!
//! Every subject is a server of its own, started for the run and filled with the same keys. `wrk` asks them in turn
//! in slices of the same length, so that a noisy second of the machine falls on all of them. Then each is asked at
//! a fixed rate, whatever it answers: latency counts from the instant at which a request was due, so that a server
//! that stalls cannot hide it by being asked less.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool speaks on the terminal")]

mod client;
mod options;
mod published;
mod question;
mod report;
mod results;
mod runner;
mod sample;
mod server;
mod subject;
mod summary;
mod wrk;

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
