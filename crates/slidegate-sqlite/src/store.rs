//! The store: an engine on a file, and a thread for the asynchronous calls.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use slidegate::time::{Clock, SystemClock, WallClock};

use crate::engine::Engine;
use crate::error::OpenError;
use crate::file_lock::FileLock;
use crate::lock_wait::{Deadline, LockWait};
use crate::options::SqliteOptions;
use crate::store_file::StoreFile;
use crate::worker::Worker;

/// A store in a file, shared by all processes of a machine that open it.
///
/// Its clock is the system's, which they share too. The plain verbs block the thread while they wait for the lock and
/// the disk. The asynchronous verbs never do: a thread of the store executes them in order. It starts with the first
/// and ends when the store is dropped.
///
/// A call that has not started by its deadline is [unavailable](slidegate::store::StoreError::Unavailable) and is not
/// executed. The same holds for a call whose future was dropped while it was queued, and for one that finds
/// [`QUEUE_MAX`](crate::QUEUE_MAX) others in the queue.
pub struct SqliteStore<C = WallClock> {
    /// First, because it must end before the file is closed.
    pub(crate) worker: Worker,
    pub(crate) engine: Arc<Engine<C>>,
}

impl<C> fmt::Debug for SqliteStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, deadline) = (&self.worker, &self.engine.deadline);
        f.debug_struct("SqliteStore")
            .field("deadline", deadline)
            .field("worker", worker)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store in a file. A missing file is created, readable for its owner only; its directory must exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(&SqliteOptions::new(path.as_ref()))
    }

    /// The same with given options.
    ///
    /// ```no_run
    /// use slidegate_sqlite::{Durability, SqliteOptions, SqliteStore};
    ///
    /// let options = SqliteOptions::new("quota.db").durability(Durability::Normal);
    /// let store = SqliteStore::open_with(&options)?;
    /// # Ok::<(), slidegate_sqlite::OpenError>(())
    /// ```
    pub fn open_with(options: &SqliteOptions) -> Result<Self, OpenError> {
        let monotonic = Arc::new(SystemClock::new());
        let deadline = options.deadline_or_default();
        let until = Deadline::after(&monotonic, deadline);
        let file = StoreFile::open(options, &mut LockWait::new(&monotonic, until))?;
        let file = Arc::new(FileLock::new(file));
        let worker = Worker::new(Arc::clone(&monotonic));
        Ok(Self {
            worker,
            engine: Arc::new(Engine { file, clock: WallClock, has_custom_clock: false, monotonic, deadline }),
        })
    }
}

impl<C> SqliteStore<C> {
    /// The same store on another clock.
    ///
    /// ```no_run
    /// use slidegate::time::ManualClock;
    /// use slidegate_sqlite::SqliteStore;
    ///
    /// let store = SqliteStore::open("quota.db")?.on_clock(ManualClock::at_us(1_000));
    /// # Ok::<(), slidegate_sqlite::OpenError>(())
    /// ```
    #[must_use]
    pub fn on_clock<D: Clock>(self, clock: D) -> SqliteStore<D> {
        let Self { worker, engine } = self;
        SqliteStore { worker, engine: Arc::new(engine.on_clock(clock)) }
    }
}
