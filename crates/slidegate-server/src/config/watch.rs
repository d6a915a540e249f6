//! Watches a configuration file, and listens for SIGHUP.
//!
//! The directory is watched, not the file: editors rename a new file over the old one, and Kubernetes swaps a symbolic
//! link beside it (`..data`); a watch on the file itself would go on watching what is no longer there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use slidegate::store::Store;
use tokio::runtime::{Builder, Runtime};

use super::reload::{Reloader, Trigger};

/// A file is read when nothing has happened around it for so long: whoever writes it may need several steps.
const QUIET: Duration = Duration::from_millis(50);
/// It is read after so many waits at the latest, however busy the directory is.
const WAITS_MAX: usize = 20;

/// A watch that lasts as long as this.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Ends the thread when it goes, as nobody is left to send.
    _watcher: RecommendedWatcher,
}

/// Reloads whenever the file changes, on a thread of its own.
pub(crate) fn watch<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<Watch> {
    let (happened, events) = mpsc::channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error may hide a change; reading in vain does no harm. Reading is an event too, and no change.
        if !matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_))) {
            happened.send(()).ok();
        }
    })
    .map_err(io::Error::other)?;
    for directory in directories(reloader.path()) {
        watcher.watch(&directory, RecursiveMode::NonRecursive).map_err(io::Error::other)?;
    }
    let runtime = runtime()?;
    let reloader = Arc::clone(reloader);
    thread::Builder::new().name("reload".to_owned()).spawn(move || {
        // It may have changed since it was read and before it was watched.
        runtime.block_on(reloader.reload_if_changed());
        while quiet_after_event(&events) {
            runtime.block_on(reloader.reload_if_changed());
        }
    })?;
    Ok(Watch { _watcher: watcher })
}

/// The directory of the file; and, where the file is a link to another directory, that one.
fn directories(path: &Path) -> Vec<PathBuf> {
    let parent = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut directories = vec![parent(path)];
    if let Ok(real) = path.canonicalize() {
        let own = directories[0].canonicalize().ok();
        // What Kubernetes links to is never written again: it goes as a whole.
        let is_own = |real: &Path| own.as_ref().is_some_and(|own| real.starts_with(own));
        if !is_own(&real) {
            directories.push(parent(&real));
        }
    }
    directories
}

/// Waits for an event and then for quiet; `false` when the watch has ended.
fn quiet_after_event(events: &Receiver<()>) -> bool {
    if events.recv().is_err() {
        return false;
    }
    for _ in 0..WAITS_MAX {
        match events.recv_timeout(QUIET) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Reloads on every SIGHUP, on a thread of its own, as long as the program runs.
#[cfg(unix)]
pub(crate) fn on_hangup<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

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
                reloader.reload_now(Trigger::Signal).await;
            }
        });
    })?;
    Ok(())
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
