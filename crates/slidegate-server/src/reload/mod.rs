//! Live reload of the configuration file: `directories` finds what to watch, `file_watch` detects a change, `reloader`
//! reads the file and swaps the rules, and `difference` says which states must be migrated.

mod difference;
mod directories;
mod file_watch;
mod reloader;

pub(crate) use difference::with_override_windows;
pub(crate) use file_watch::{FileWatch, watch};
pub(crate) use reloader::{FileReloader, ReloadResult};
