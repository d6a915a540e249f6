//! Measures commands from start to end, beside the `sqlite3` shell and the machine's own fsync.
//!
//! Every round runs each subject once, one after the other, so that a noisy second of the machine affects all of them.
//! Subjects that sync the disk have rounds of their own. A time is from the call that starts the process until its exit
//! status is known, which is what a script waits for.
#![expect(clippy::print_stdout, reason = "a command-line tool prints to the terminal")]

mod bench;
mod options;
mod published;
mod report;
mod results;
mod subject;

use clap::Parser;

use options::Options;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(samples) = &options.table {
        published::PUBLISHED.publish(samples)?;
        return Ok(());
    }
    bench::run(&options)
}
