//! Watches a configuration file, and listens for SIGHUP.
//!
//! The directory is watched, not the file: editors rename a new file over the old one, and Kubernetes swaps a symbolic
//! link beside it (`..data`); a watch on the file itself would go on watching what is no longer there.

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

/// A file is read when nothing has happened around it for so long: writing it may take several steps.
const QUIET: Duration = Duration::from_millis(50);
/// It is read after so many waits at the latest, however busy the directory is.
const WAITS_MAX: usize = 20;

/// How often it is looked whether the store follows, where it did not.
const AGAIN: Duration = Duration::from_secs(5);
/// Links that are followed from one to the next.
const LINKS_MAX: usize = 40;

/// A watch that lasts as long as this: the thread ends when nobody is left to tell it of changes.
#[derive(Debug)]
pub(crate) struct Watch {
    _places: Arc<Mutex<Places>>,
}

/// What is watched.
#[derive(Debug)]
struct Places {
    watcher: RecommendedWatcher,
    directories: Vec<PathBuf>,
}

impl Places {
    /// Watches the directories where the file is now. Links may lead elsewhere after a change, and a directory
    /// that was replaced by another of the same name is no longer the one that was watched.
    fn follow(&mut self, path: &Path) -> io::Result<()> {
        for directory in std::mem::take(&mut self.directories) {
            // It may be gone.
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
pub(crate) fn watch<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<Watch> {
    let (happened, events) = mpsc::channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error may hide a change; reading in vain does no harm. Reading is an event too, and no change.
        if !matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_))) {
            happened.send(()).ok();
        }
    })
    .map_err(io::Error::other)?;
    let mut places = Places { watcher, directories: Vec::new() };
    places.follow(reloader.path())?;
    let places = Arc::new(Mutex::new(places));
    let runtime = runtime()?;
    let (reloader, weak) = (Arc::clone(reloader), Arc::downgrade(&places));
    thread::Builder::new().name("reload".to_owned()).spawn(move || {
        // It may have changed since it was read and before it was watched.
        runtime.block_on(reloader.reload_if_changed());
        while let Some(happened) = next(&events) {
            if happened {
                let Some(places) = weak.upgrade() else { return };
                // Watched first: what changes from now on is seen, and what changed before is read.
                places.lock().unwrap_or_else(PoisonError::into_inner).follow(reloader.path()).ok();
            }
            if happened || runtime.block_on(reloader.is_waiting()) {
                runtime.block_on(reloader.reload_if_changed());
            }
        }
    })?;
    Ok(Watch { _places: places })
}

/// The directory of the file; and, where it is a link, those of all that it leads to.
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

/// Waits for an event and then for quiet, or for a while; says whether anything happened. `None` ends the watch.
fn next(events: &Receiver<()>) -> Option<bool> {
    let mut wait = AGAIN;
    for happened in 0..=WAITS_MAX {
        match events.recv_timeout(wait) {
            Ok(()) => wait = QUIET,
            Err(RecvTimeoutError::Timeout) => return Some(happened > 0),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    Some(true)
}

/// Reloads on every SIGHUP, on a thread of its own, as long as the program runs.
pub(crate) fn on_hangup<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<()> {
    let runtime = runtime()?;
    // Before the thread starts, so that no signal after this call ends the program.
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
