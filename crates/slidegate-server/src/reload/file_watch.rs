//! Watches the configuration file and reloads it when it changes.
//!
//! Events of the system are the fast way; a look at the file and its directories every second is the safe one.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use notify::EventKind;
use slidegate::store::Store;
use tokio::runtime::Builder;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::directories::WatchedDirectories;
use super::reloader::Reloader;

/// The file is read after this long without events, because writing it may take several steps.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// The file is read this long after an event at the latest, even if the directory stays busy.
const DEBOUNCE_TIME_MAX: Duration = Duration::from_secs(1);
/// Period of looks at the file and its directories, which notice what no event tells.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Period of retries after a store failure.
const RETRY_PERIOD: Duration = Duration::from_secs(5);

/// A running watch. Dropping it ends its thread.
#[derive(Debug)]
pub(crate) struct FileWatch {
    requested: Arc<Notify>,
    _ends_when_dropped: oneshot::Sender<()>,
}

impl FileWatch {
    /// Requests a reload whether or not the file has changed. Requests that arrive before it begins share it.
    pub(crate) fn request_reload(&self) {
        self.requested.notify_one();
    }
}

/// Reloads whenever the file changes, on a thread of its own.
pub(crate) fn watch<S: Store + 'static>(reloader: &Arc<Reloader<S>>) -> io::Result<FileWatch> {
    // A `Notify` holds one permit: any number of events before the next look are one.
    let (changed, requested) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let on_event = Arc::clone(&changed);
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error may hide a change, so it counts as one. Reads cause events too, and are not changes.
        if !matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_))) {
            on_event.notify_one();
        }
    })
    .map_err(io::Error::other)?;
    let directories = WatchedDirectories::new(watcher, reloader.path())?;
    let (sender, ended) = oneshot::channel();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let watching =
        Watching { reloader: Arc::clone(reloader), directories, changed, requested: Arc::clone(&requested) };
    thread::Builder::new().name("reload".to_owned()).spawn(move || runtime.block_on(watching.run(ended)))?;
    Ok(FileWatch { requested, _ends_when_dropped: sender })
}

/// The state of the thread.
struct Watching<S> {
    reloader: Arc<Reloader<S>>,
    directories: WatchedDirectories,
    changed: Arc<Notify>,
    requested: Arc<Notify>,
}

impl<S: Store> Watching<S> {
    async fn run(mut self, mut ended: oneshot::Receiver<()>) {
        // The file may have changed after it was read and before the watch began.
        self.reloader.reload_if_changed().await;
        let [mut looks, mut retries] = [LOOK_PERIOD, RETRY_PERIOD].map(|period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        loop {
            tokio::select! {
                _ = &mut ended => return,
                () = self.requested.notified() => {
                    self.directories.follow();
                    self.reloader.reload_now().await;
                }
                () = self.changed.notified() => self.reload_changed().await,
                _ = looks.tick() => {
                    if self.directories.have_changed() {
                        self.reload_changed().await;
                    }
                }
                _ = retries.tick() => {
                    if self.reloader.is_waiting() {
                        self.reloader.reload_if_changed().await;
                    }
                }
            }
        }
    }

    async fn reload_changed(&mut self) {
        let quiet = async { while timeout(DEBOUNCE, self.changed.notified()).await.is_ok() {} };
        timeout(DEBOUNCE_TIME_MAX, quiet).await.ok();
        // Watch before reading, so that no change falls in between.
        self.directories.follow();
        self.reloader.reload_if_changed().await;
    }
}
