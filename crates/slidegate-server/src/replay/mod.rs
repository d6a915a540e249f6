//! Traces: operations with their times, a JSON object per line, each executed at exactly its time.
//!
//! The file list is the path of a line: `run` drives the replay, `lines` cuts the input into lines, `operation` parses
//! a line, `charges` makes an admission of it, `executor` executes it, `answer` is the output line, `line_error` the
//! error that takes its place.

mod answer;
mod charges;
mod executor;
mod line_error;
mod lines;
mod operation;
mod receipts;
mod run;

use executor::Executor;
pub(crate) use run::{ReplayError, Summary, run};
