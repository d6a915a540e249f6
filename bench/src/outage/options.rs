//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// The samples that the page shows.
pub(crate) const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/outage.json");

/// Measures the deny cache on a shared Redis, and a server whose Redis is gone. Some minutes.
#[derive(Debug, Parser)]
#[command(name = "outage")]
pub(crate) struct Options {
    /// Slices of a second, as a trial; the figures are not comparable
    #[arg(long)]
    pub(crate) quick: bool,
    /// Slices of every run; the tables show the median
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) reps: u32,
    /// Measure nothing: write docs/performance.md from bench/results/outage.json, or put the samples of FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    pub(crate) table: Option<PathBuf>,
}

impl Options {
    /// Seconds of a slice at the maximum rate.
    pub(crate) fn slice_seconds(&self) -> u64 {
        if self.quick { 1 } else { 3 }
    }

    /// Seconds of the run at a fixed rate.
    pub(crate) fn fixed_rate_seconds(&self) -> u64 {
        if self.quick { 5 } else { 30 }
    }
}
