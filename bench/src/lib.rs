//! What the benchmarks share: figures, tables, the machine, and the pages that show them.
#![expect(clippy::print_stderr, reason = "a command-line tool speaks on the terminal")]

pub mod block;
pub mod machine;
pub mod markdown;
pub mod measured;
pub mod published;
pub mod statistics;
