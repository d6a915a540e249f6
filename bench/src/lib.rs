//! Shared by the benchmarks: statistics, tables, the machine, and the pages that show the samples.
#![expect(clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

pub mod block;
pub mod machine;
pub mod markdown;
pub mod measurement;
pub mod published;
pub mod statistics;
