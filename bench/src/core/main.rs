//! The cost of one decision in time and memory, beside other limiters and a bare hash table.
//!
//! The program starts itself once per subject, scenario and repetition: a fresh process has a fresh heap, and no
//! subject inherits the pages or the branch history of another. Subjects take turns within a repetition, so that a
//! noisy minute of the machine affects all of them.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod child;
mod flood;
mod growth;
mod options;
mod parent;
mod published;
mod report;
mod requests;
mod resident;
mod results;
mod sample;
mod saturated;
mod scenario;
mod subject;
mod summary;
mod threads;
mod zipf;

use clap::Parser;
use slidegate_bench::{block, machine, markdown, statistics};

use options::Options;

#[cfg(feature = "rivals")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(run) = options.child_run() {
        println!("{}", serde_json::to_string(&child::run(run)?)?);
        return Ok(());
    }
    if let Some(samples) = &options.table {
        return published::publish(samples);
    }
    parent::run(&options)
}
