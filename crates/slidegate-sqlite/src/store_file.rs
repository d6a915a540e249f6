//! The open file of a store, and whether its path still names it.
//!
//! A file that is deleted or replaced lives on for the process that has it open, while every other process uses the new one:
//! both would admit the whole limit. So the path is looked at every half second of use. The call that notices another file
//! closes the old one, opens the new one as at the start, and fails: its caller has an error to log, and the next call uses
//! the new file. If there is none to open, all calls fail until there is.
//!
//! **The log and the shared memory go with their database.** Left beside a new one they would damage it: SQLite would take
//! the pages of the old log for its own. Those that belonged to the old file are deleted, under a lock on their directory, so
//! that no process deletes what another has just created. The pages of the log are moved into the old database first, which
//! may have been kept under another name.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::directory_lock::lock_directory;
use crate::error::OpenError;
use crate::file;
use crate::file_error::FileError;
use crate::lock_wait::LockWait;
use crate::options::SqliteOptions;
use crate::wal;

/// How often the path is looked at.
const LOOKED_AT_EVERY_US: u64 = 500_000;

/// The file of a store.
#[derive(Debug)]
pub(crate) struct StoreFile {
    options: SqliteOptions,
    /// An error if there is no file to open.
    open: Result<OpenFile, FileError>,
    /// When the path is looked at again, by the monotonic clock.
    pub(crate) look_at_us: u64,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) connection: Connection,
    /// The path of its write-ahead log.
    pub(crate) wal: PathBuf,
    /// The database as its path named it, its log, and their shared memory.
    files: [NamedFile; 3],
}

/// A path, and the file that it named.
#[derive(Debug)]
struct NamedFile {
    path: PathBuf,
    id: Option<FileId>,
}

/// The device and the number of a file; `None` on systems that have none.
pub(crate) type FileId = (u64, u64);

#[cfg(unix)]
pub(crate) fn id_of(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn id_of(_path: &Path) -> Option<FileId> {
    None
}

/// The path of a file that SQLite keeps beside a database.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl NamedFile {
    fn new(path: PathBuf) -> Self {
        let id = id_of(&path);
        Self { path, id }
    }

    /// Whether the path names the same file as before.
    fn is_same(&self) -> bool {
        id_of(&self.path) == self.id
    }
}

impl OpenFile {
    /// An open database, of that id.
    pub(crate) fn new(connection: Connection, path: &Path, id: Option<FileId>) -> Self {
        // Of a symbolic link the log lies beside the target.
        let target = connection.path().map_or_else(|| path.to_owned(), PathBuf::from);
        let (wal, shared_memory) = (beside(&target, "-wal"), beside(&target, "-shm"));
        let database = NamedFile { path: path.to_owned(), id };
        let files = [database, NamedFile::new(wal.clone()), NamedFile::new(shared_memory)];
        Self { connection, wal, files }
    }

    /// What happened to the file; `None` while all its paths name the same files as before.
    fn change(&self) -> Option<&'static str> {
        let [database, beside @ ..] = &self.files;
        match id_of(&database.path) {
            id if id != database.id => Some(if id.is_none() { "deleted" } else { "replaced" }),
            _ if beside.iter().all(NamedFile::is_same) => None,
            _ => Some("separated from its log"),
        }
    }

    /// Closes the file, and deletes what would damage its successor: the log of another database, and the shared memory of
    /// another log. The caller has locked the directory.
    fn close(self) {
        let Self { connection, files, .. } = self;
        if !files[0].is_same() {
            // The database may have been moved: it is complete without its log then.
            wal::empty(&connection);
        }
        // Closed first: a new connection of this process would share locks with it.
        drop(connection);
        let mut is_changed = false;
        for file in files {
            let is_same = file.is_same();
            if is_same && is_changed {
                // An error leaves it, and the file is refused or damaged as any with a wrong log.
                let _ = fs::remove_file(&file.path);
            }
            is_changed |= !is_same;
        }
    }
}

impl StoreFile {
    pub(crate) fn open(options: &SqliteOptions, lock_wait: &mut LockWait<'_>) -> Result<Self, OpenError> {
        let open = file::open(options, lock_wait)?;
        Ok(Self { options: options.clone(), open: Ok(open), look_at_us: 0 })
    }

    /// The open file. An error if there is none, and once after it was deleted or replaced.
    pub(crate) fn current(
        &mut self,
        now_us: u64,
        lock_wait: &mut LockWait<'_>,
    ) -> Result<&OpenFile, FileError> {
        if now_us >= self.look_at_us {
            self.look_at_us = now_us.saturating_add(LOOKED_AT_EVERY_US);
            self.look(lock_wait)?;
        }
        self.open.as_ref().map_err(Clone::clone)
    }

    /// Opens the file again if its path names another one, or if there was none.
    fn look(&mut self, lock_wait: &mut LockWait<'_>) -> Result<(), FileError> {
        let changed = match &self.open {
            Ok(open) => open.change(),
            Err(_) => None,
        };
        if self.open.is_ok() && changed.is_none() {
            return Ok(());
        }
        // The next call looks again if this one does not get the lock.
        let look_at_us = std::mem::take(&mut self.look_at_us);
        let locked = lock_directory(self.options.path(), lock_wait);
        let locked = locked.map_err(|error| FileError::not_opened(&error))?;
        self.look_at_us = look_at_us;
        if let Ok(open) = std::mem::replace(&mut self.open, Err(FileError::timed_out())) {
            open.close();
        }
        drop(locked);
        self.open = file::open(&self.options, lock_wait).map_err(|error| FileError::not_opened(&error));
        match (&self.open, changed) {
            (Err(error), _) => Err(error.clone()),
            (Ok(_), Some(change)) => Err(FileError::changed(self.options.path(), change)),
            (Ok(_), None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
