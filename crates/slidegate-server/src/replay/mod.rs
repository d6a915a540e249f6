//! Traces: operations with their times, a JSON object per line, each executed at exactly its time.
//!
//! The file list is the path of a line: `run` passes it on, `lines` finds it, `request` takes it apart and says
//! what it asks for, `charges` makes that an admission, `session` executes it, `answer` is what is written for it.
//! What goes wrong on the way is a `failure`.

mod answer;
mod charges;
mod failure;
mod lines;
mod receipts;
mod request;
mod run;
mod session;

pub(crate) use run::{ReplayError, Summary, run};
use session::Session;
