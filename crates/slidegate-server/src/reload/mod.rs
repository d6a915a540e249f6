//! Live reload of the configuration file: `file_watch` detects a change or a SIGHUP, `reloader` reads the file and
//! swaps the rules, and `difference` says which states must be migrated.

mod difference;
mod file_watch;
mod reloader;

pub(crate) use difference::with_override_windows;
pub(crate) use file_watch::{FileWatch, on_hangup, watch};
pub(crate) use reloader::{FileReloader, ReloadResult};
