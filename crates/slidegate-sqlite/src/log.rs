//! The log that admissions are written to, and when its pages are moved into the database.
//!
//! SQLite would move them by itself, in two ways that do not fit processes that come and go. At a close it moves all of
//! them: two syncs for every process, also for one that was denied. And from a thousand pages on it moves them at every
//! commit without emptying the log, which whoever comes first then takes for full again, and reads as far as it goes.
//! Here the log is emptied when it is long enough, by whoever has just written.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

/// A page in the log, with its header.
const PAGE_BYTES: u64 = 4_096 + 24;
/// A log of so many pages is emptied. Whoever comes first reads all of it, so it must be short; emptying it takes two
/// syncs, so it must not be very short.
const PAGES: u64 = 128;
/// Those who look at the log keep it from being emptied. It is tried again after about so many pages, not at once.
const TRIED_EVERY: u64 = 32;
/// A commit writes so many pages at most, mostly.
const PAGES_PER_COMMIT: u64 = 4;
/// A log of more pages is emptied with some patience.
const PAGES_MAX: u64 = 1_024;
/// How long those who look at it are then waited for.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where the log of a database is.
pub(crate) fn of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Empties the log if it has become long. What stands in the way is gone in a moment: then the next does it.
pub(crate) fn keep_short(connection: &Connection, log: &Path) {
    let pages = fs::metadata(log).map_or(0, |log| log.len() / PAGE_BYTES);
    if pages >= PAGES_MAX {
        let _ = connection.busy_timeout(PATIENCE);
        empty(connection);
        let _ = connection.busy_timeout(Duration::ZERO);
    } else if pages >= PAGES && pages % TRIED_EVERY < PAGES_PER_COMMIT {
        empty(connection);
    }
}

fn empty(connection: &Connection) {
    // The charge is made and durable, whatever becomes of this.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}
