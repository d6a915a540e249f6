//! The store: an engine on a file, and a thread for the asynchronous calls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use slidegate::time::{Clock, SystemClock, WallClock};

use crate::engine::Engine;
use crate::error::OpenError;
use crate::file;
use crate::hold::Hold;
use crate::log;
use crate::options::SqliteOptions;
use crate::patience::{Deadline, Patience};
use crate::worker::Worker;

/// A store in a file that all processes of a machine share that open it.
///
/// It goes by the system's clock, which they share as well. The plain verbs block the thread while they wait for their
/// turn and for the disk. The asynchronous ones never do: a thread of the store's own executes them, in their order; it
/// starts with the first and ends when the store is dropped.
///
/// A call that has had no turn by its deadline, which counts from the call, is
/// [unavailable](slidegate::store::StoreError::Unavailable) and is not executed; nor is one whose future was dropped
/// before its turn, or that finds [`QUEUE_MAX`](crate::QUEUE_MAX) others waiting.
pub struct SqliteStore<C = WallClock> {
    /// First, as it ends before the file is closed.
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
    /// The store in the file at that path. Where there is none it is created, for its owner only; its directory must be
    /// there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(&SqliteOptions::new(path.as_ref()))
    }

    /// The same with options.
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
        let deadline = options.waits();
        let until = Deadline::after(&monotonic, deadline);
        let connection = file::open(options, &mut Patience::new(&monotonic, until))?;
        // Where links lead to the file, the log is beside the file.
        let path = connection.path().map_or_else(|| options.path().to_owned(), PathBuf::from);
        let (hold, log) = (Arc::new(Hold::new(connection)), log::of(&path));
        let worker = Worker::new(Arc::clone(&monotonic));
        Ok(Self {
            worker,
            engine: Arc::new(Engine {
                hold,
                clock: WallClock,
                is_own_clock: false,
                monotonic,
                deadline,
                log,
            }),
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
