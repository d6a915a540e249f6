//! Watches the configuration file, and listens for SIGHUP.
//!
//! The directory is watched, not the file: editors rename a new file over the old one, and Kubernetes swaps a symbolic
//! link beside it (`..data`). A watch on the file itself would keep watching the deleted file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use slidegate::store::Store;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use super::reloader::Reloader;

/// The file is read after this long without events, because writing it may take several steps.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// The file is read after this many events at the latest, even if the directory stays busy.
const DEBOUNCES_MAX: usize = 20;

/// Period of retries after a store failure.
const RETRY_PERIOD: Duration = Duration::from_secs(5);
/// Longest chain of symbolic links that is followed.
const LINKS_MAX: usize = 40;

/// A running watch. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct FileWatch {
    _directories: Arc<Mutex<WatchedDirectories>>,
}

/// The directories that are watched.
#[derive(Debug)]
struct WatchedDirectories {
    watcher: RecommendedWatcher,
    directories: Vec<PathBuf>,
}

impl WatchedDirectories {
    /// Watches the directories of the file again. A change may have redirected a link or replaced a directory by
    /// another of the same name.
    fn follow(&mut self, path: &Path) -> io::Result<()> {
        for directory in std::mem::take(&mut self.directories) {
            // The directory may be gone.
            self.watcher.unwatch(&directory).ok();
        }
        for directory in directories(path) {
            if self.watcher.watch(&directory, RecursiveMode::NonRecursive).is_ok() {
                self.directories.push(directory);
            }
        }
        if self.directories.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }
}

/// Reloads whenever the file changes, on a thread of its own.
pub(crate) fn watch<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<FileWatch> {
    let (happened, events) = mpsc::channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error may hide a change, so it counts as one. Reads cause events too, and are not changes.
        if !matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_))) {
            happened.send(()).ok();
        }
    })
    .map_err(io::Error::other)?;
    let mut directories = WatchedDirectories { watcher, directories: Vec::new() };
    directories.follow(reloader.path())?;
    let directories = Arc::new(Mutex::new(directories));
    let runtime = runtime()?;
    let (reloader, weak) = (Arc::clone(reloader), Arc::downgrade(&directories));
    thread::Builder::new().name("reload".to_owned()).spawn(move || {
        // The file may have changed after it was read and before the watch began.
        runtime.block_on(reloader.reload_if_changed());
        while let Some(happened) = next(&events) {
            if happened {
                let Some(directories) = weak.upgrade() else { return };
                // Watch before reading, so that no change falls in between.
                directories.lock().unwrap_or_else(PoisonError::into_inner).follow(reloader.path()).ok();
            }
            if happened || runtime.block_on(reloader.is_waiting()) {
                runtime.block_on(reloader.reload_if_changed());
            }
        }
    })?;
    Ok(FileWatch { _directories: directories })
}

/// The directory of the file and, if it is a link, of every target in the chain.
fn directories(path: &Path) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let target = path.read_link().ok().map(|target| directory.join(target));
        if !directories.contains(&directory) {
            directories.push(directory);
        }
        match target {
            Some(target) => path = target,
            None => break,
        }
    }
    directories
}

/// Waits for an event, debounced, or for the retry period; returns whether there was an event. `None` ends the watch.
fn next(events: &Receiver<()>) -> Option<bool> {
    let mut wait = RETRY_PERIOD;
    for happened in 0..=DEBOUNCES_MAX {
        match events.recv_timeout(wait) {
            Ok(()) => wait = DEBOUNCE,
            Err(RecvTimeoutError::Timeout) => return Some(happened > 0),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    Some(true)
}

/// Reloads on every SIGHUP, on a thread of its own.
pub(crate) fn on_hangup<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<()> {
    let runtime = runtime()?;
    // Registered before the thread starts, so that no SIGHUP after this call ends the program.
    let mut hangups = {
        let _entered = runtime.enter();
        signal(SignalKind::hangup())?
    };
    let reloader = Arc::clone(reloader);
    thread::Builder::new().name("hangup".to_owned()).spawn(move || {
        runtime.block_on(async {
            while hangups.recv().await.is_some() {
                reloader.reload_now().await;
            }
        });
    })?;
    Ok(())
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
