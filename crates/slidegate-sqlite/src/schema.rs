//! The schema of the file, and migrations from older versions.
//!
//! Version 1 had no expiry column, so that nothing could be swept, and no records of spent receipts. Version 2 had
//! receipt ids of two numbers. No program accepts its receipts any more, so a migration deletes their records: nothing
//! can be refunded twice. Version 3 did not follow a clock that was set back.

use rusqlite::{Connection, params};
use slidegate::store::Record;

use crate::file_error::FileError;
use crate::rows;

/// `sgt1` in ASCII, in the file's header: it identifies files of this program.
pub(crate) const APPLICATION_ID: i64 = 0x7367_7431;
/// The version that this program writes.
pub(crate) const VERSION: i64 = 4;

const META: &str = "
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL,
        secret BLOB NOT NULL,
        ord INTEGER NOT NULL,
        noted_us INTEGER NOT NULL,
        presented_us INTEGER NOT NULL DEFAULT 0,
        spent INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER NOT NULL DEFAULT 0
    ) STRICT;";

const STATE: &str = "
    CREATE TABLE state (
        rule TEXT NOT NULL,
        key TEXT NOT NULL,
        bytes BLOB NOT NULL,
        expires_us INTEGER NOT NULL,
        epoch INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (rule, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX state_by_expiry ON state (expires_us);";

const SPENT: &str = "
    CREATE TABLE spent (
        id INTEGER PRIMARY KEY,
        expires_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX spent_by_expiry ON spent (expires_us);";

/// The column of version 4.
const EPOCH: &str = "ALTER TABLE state ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;";

const CLOCK_STEP: &str = "
    CREATE TABLE clock_step (
        epoch INTEGER PRIMARY KEY,
        ord INTEGER NOT NULL,
        from_us INTEGER NOT NULL,
        to_us INTEGER NOT NULL
    ) STRICT;";

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileOwner {
    /// The file is empty.
    Empty,
    /// This program, in that version.
    Ours(i64),
    /// Another program.
    Foreign,
}

/// The owner of the file, in one snapshot: another process may be about to fill it.
pub(crate) fn owner(connection: &Connection) -> rusqlite::Result<FileOwner> {
    let _snapshot = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(match (number("PRAGMA application_id")?, number("PRAGMA user_version")?) {
        (APPLICATION_ID, version) => FileOwner::Ours(version),
        (0, 0) if number("SELECT count(*) FROM sqlite_schema")? == 0 => FileOwner::Empty,
        _ => FileOwner::Foreign,
    })
}

/// Lets SQLite read the schema, or fails as locked. A connection that read it while the file was empty otherwise goes on
/// with that until it next gets a lock, and `no such table` would be the answer to its first call.
pub(crate) fn load(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// Fills an empty file, in the caller's transaction.
pub(crate) fn create(connection: &Connection) -> Result<(), FileError> {
    let mut secret = [0; 32];
    let mut number = [0; 8];
    for bytes in [&mut secret[..], &mut number[..]] {
        getrandom::fill(bytes).map_err(|error| {
            let why = format!("the system gives no random numbers to sign receipts with: {error}");
            FileError::Unavailable(why.into())
        })?;
    }
    connection.execute_batch(&format!("{META}{STATE}{SPENT}{CLOCK_STEP}"))?;
    connection.execute(
        "INSERT INTO meta (id, number, secret, ord, noted_us) VALUES (1, ?1, ?2, 0, 0)",
        params![i64::from_le_bytes(number), secret],
    )?;
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}"
    ))?;
    Ok(())
}

/// Migrates a file of an older version, in the caller's transaction.
pub(crate) fn migrate(connection: &Connection, version: i64) -> Result<(), FileError> {
    match version {
        1 => {
            add_expiry(connection)?;
            connection.execute_batch(SPENT)?;
        }
        2 => {
            connection
                .execute_batch(&format!("DROP TABLE spent; UPDATE meta SET spent = 0; {SPENT}{EPOCH}"))?;
        }
        _ => connection.execute_batch(EPOCH)?,
    }
    connection.execute_batch(&format!(
        "ALTER TABLE meta ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
         {CLOCK_STEP} PRAGMA user_version = {VERSION}"
    ))?;
    Ok(())
}

/// From version 1: states get an expiry, and `meta` its columns for receipts.
fn add_expiry(connection: &Connection) -> Result<(), FileError> {
    connection.execute_batch(&format!(
        "ALTER TABLE meta ADD COLUMN presented_us INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE meta ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE state RENAME TO state_1;
         {STATE}"
    ))?;
    let mut older = connection.prepare("SELECT rule, key, bytes FROM state_1")?;
    let mut found = older.query([])?;
    while let Some(row) = found.next()? {
        let (rule, key, bytes): (String, String, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // A damaged state stays as it is, and is an error when it is used.
        let expires_us = Record::from_bytes(&bytes).map_or(u64::MAX, |record| record.expires_us());
        rows::insert(connection, 0, &rule, &key, &bytes, expires_us)?;
    }
    drop(found);
    drop(older);
    connection.execute_batch("DROP TABLE state_1")?;
    Ok(())
}
