//! Checkpoints of the write-ahead log: they move its pages into the database and empty it.
//!
//! SQLite's own two checkpoints do not suit short processes. At close it moves all pages: two syncs for every process,
//! even for one that was denied. From a thousand pages on it moves them at every commit without emptying the log, and
//! the next process to open the file reads all of it. Here the process that has just written empties a long log.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

/// A page in the log, with its header.
const PAGE_BYTES: u64 = 4_096 + 24;
/// A log of this many pages is emptied. A process that opens the file reads all of it, so it must be short; a
/// checkpoint takes two syncs, so it must not be very short.
const PAGES: u64 = 128;
/// Readers block the checkpoint. It is retried after about this many pages.
const TRIED_EVERY: u64 = 32;
/// Most commits write at most this many pages.
const PAGES_PER_COMMIT: u64 = 4;
/// For a longer log the checkpoint waits for readers.
const PAGES_MAX: u64 = 1_024;
/// How long it waits for them.
const READER_WAIT_MAX: Duration = Duration::from_millis(100);

/// Empties the log if it is long. If readers block that, a later call does it.
pub(crate) fn checkpoint_if_long(connection: &Connection, wal: &Path) {
    let pages = fs::metadata(wal).map_or(0, |wal| wal.len() / PAGE_BYTES);
    if pages >= PAGES_MAX {
        let _ = connection.busy_timeout(READER_WAIT_MAX);
        empty(connection);
        let _ = connection.busy_timeout(Duration::ZERO);
    } else if pages >= PAGES && pages % TRIED_EVERY < PAGES_PER_COMMIT {
        empty(connection);
    }
}

/// Moves all pages of the log into the database, unless other processes use it.
pub(crate) fn empty(connection: &Connection) {
    // The charge is durable already; an error here loses nothing.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}
