//! Live reload of the configuration file: `watch` sees a change or a SIGHUP, `reloader` reads the file and puts it in
//! force, and `difference` says which states must be carried over.

mod difference;
mod reloader;
mod watch;

pub(crate) use difference::with_windows_of;
pub(crate) use reloader::{FileReloader, Reloaded};
pub(crate) use watch::{Watch, on_hangup, watch};
