//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// The samples that the page shows.
pub(crate) const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/cli.json");
/// The samples of the last run.
pub(crate) const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench/cli.json");

/// Runs with fewer rounds are not published.
pub(crate) const ROUNDS_MIN: u32 = 200;

/// Measures commands from start to end. A minute on an idle machine.
#[derive(Debug, Parser)]
#[command(name = "cli")]
pub(crate) struct Options {
    /// Number of runs of every subject
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rounds: u32,
    /// Directory for the measured files, on the disk to measure [default: target/bench]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Measure nothing: write docs/performance.md from bench/results/cli.json, or put the samples of FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    pub(crate) table: Option<PathBuf>,
}
