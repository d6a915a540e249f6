//! The log of a server on stderr: JSON lines for machines, text for people.
//!
//! Lines name rules, stores and failures, never keys, which may be personal data; `GET /v1/top` lists the busiest keys.
//! Secrets cannot be logged, because their `Debug` does not print them.
//!
//! `options` parses the flags, `install` formats events on the thread that logs, `line_queue` passes the lines to the
//! one thread that writes.

mod install;
mod line_queue;
mod options;

pub(super) use install::Log;
pub(super) use options::{LogFormat, format, level};
