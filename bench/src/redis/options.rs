//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::scenario::Scenario;
use crate::subject::Subject;

/// The samples that the pages show.
pub(crate) const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/redis.json");

/// Measures decisions on a shared Redis beside the classical sorted set. Some minutes.
#[derive(Debug, Parser)]
#[command(name = "redis")]
pub(crate) struct Options {
    /// Slices of a fifth of the length, as a trial; the figures are not comparable
    #[arg(long)]
    pub(crate) quick: bool,
    /// Slices of every run; the tables show the median
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) reps: u32,
    /// Concurrent callers, each waiting for its answer before the next call
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) callers: u16,
    /// Connections that the callers share
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) connections: u16,
    /// Measure only this subject; repeat it for more, `classical` for the ratios
    #[arg(long, value_name = "SUBJECT")]
    only: Vec<Subject>,
    /// Measure only this scenario; repeat it for more
    #[arg(long, value_name = "SCENARIO")]
    scenario: Vec<Scenario>,
    /// Measure nothing: write docs/redis.md and the README from bench/results/redis.json, or put the samples of
    /// FILE there first
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = COMMITTED, exclusive = true)]
    pub(crate) table: Option<PathBuf>,
}

impl Options {
    /// The length of a slice.
    pub(crate) fn slice(&self) -> Duration {
        Duration::from_millis(if self.quick { 200 } else { 1_000 })
    }

    pub(crate) fn subjects(&self) -> Vec<Subject> {
        let chosen = |subject: &Subject| self.only.is_empty() || self.only.contains(subject);
        Subject::all().into_iter().filter(chosen).collect()
    }

    pub(crate) fn scenarios(&self) -> Vec<Scenario> {
        let chosen = |scenario: &Scenario| self.scenario.is_empty() || self.scenario.contains(scenario);
        Scenario::all().into_iter().filter(chosen).collect()
    }
}
