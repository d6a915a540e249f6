//! The cost of one decision over HTTP in time, processor and memory, beside throttlecrab-server.
//!
//! Every subject is its own server, started for the run and filled with the same keys. `wrk` drives them in turn in
//! slices of the same length (a closed loop), so that a noisy second of the machine affects all of them. Then each gets
//! requests at a fixed rate (an open loop): latency counts from the scheduled time of a request, so that a stall is not
//! hidden by fewer requests.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod client;
mod options;
mod published;
mod report;
mod request_template;
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
