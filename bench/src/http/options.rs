//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::subject::Subject;

/// The samples that the pages show.
pub(crate) const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/http.json");

/// Measures decisions over HTTP beside throttlecrab-server. Some minutes.
#[derive(Debug, Parser)]
#[command(name = "http")]
pub(crate) struct Options {
    /// Slices of a second and a tenth of the keys, as a trial; the figures are not comparable
    #[arg(long)]
    pub(crate) quick: bool,
    /// Slices of every server; the tables show the median
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) reps: u32,
    /// Connections of the client
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) connections: u16,
    /// Measure only this subject; repeat it for more, `throttlecrab` for the ratios
    #[arg(long, value_name = "SUBJECT")]
    only: Vec<Subject>,
    /// Measure nothing: write docs/performance.md and the README from bench/results/http.json, or put the samples of
    /// FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    pub(crate) table: Option<PathBuf>,
}

impl Options {
    /// Seconds of a slice.
    pub(crate) fn slice_seconds(&self) -> u64 {
        if self.quick { 1 } else { 3 }
    }

    /// Keys that fill every server before it is measured; requests are for each in turn.
    pub(crate) fn keys(&self) -> u64 {
        if self.quick { 100_000 } else { 1_000_000 }
    }

    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let chosen = |subject: &Subject| self.only.is_empty() || self.only.contains(subject);
        Subject::all().into_iter().filter(chosen).collect()
    }
}
