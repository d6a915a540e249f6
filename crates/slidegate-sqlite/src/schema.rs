//! What is in the file, and how older files become it.
//!
//! Version 1 had no ends beside the states, so that nothing could be swept, and no record of spent receipts. Version 2
//! had ids of two numbers for receipts. Its receipts are of a form that no program takes any more, so their records are
//! dropped: nothing can be refunded twice.

use rusqlite::{Connection, params};
use slidegate::store::Record;

use crate::failure::Failure;
use crate::rows;

/// `sgt1` in ASCII: SQLite keeps it in the file's header for programs to know their files by.
pub(crate) const APPLICATION_ID: i64 = 0x7367_7431;
/// The version that this program writes.
pub(crate) const VERSION: i64 = 3;

const META: &str = "
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL,
        secret BLOB NOT NULL,
        ord INTEGER NOT NULL,
        noted_us INTEGER NOT NULL,
        presented_us INTEGER NOT NULL DEFAULT 0,
        spent INTEGER NOT NULL DEFAULT 0
    ) STRICT;";

const STATE: &str = "
    CREATE TABLE state (
        rule TEXT NOT NULL,
        key TEXT NOT NULL,
        bytes BLOB NOT NULL,
        expires_us INTEGER NOT NULL,
        PRIMARY KEY (rule, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX state_by_expiry ON state (expires_us);";

const SPENT: &str = "
    CREATE TABLE spent (
        id INTEGER PRIMARY KEY,
        expires_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX spent_by_expiry ON spent (expires_us);";

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Nobody's: there is nothing in it.
    Empty,
    /// Ours, of that version.
    Ours(i64),
    /// Another program's.
    Foreign,
}

/// Whose the file is, as the connection sees it at one moment: another process may be about to fill it.
pub(crate) fn whose(connection: &Connection) -> rusqlite::Result<Whose> {
    let _snapshot = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok(match (number("PRAGMA application_id")?, number("PRAGMA user_version")?) {
        (APPLICATION_ID, version) => Whose::Ours(version),
        (0, 0) if number("SELECT count(*) FROM sqlite_schema")? == 0 => Whose::Empty,
        _ => Whose::Foreign,
    })
}

/// Fills an empty file, in a transaction of the caller's.
pub(crate) fn create(connection: &Connection) -> Result<(), Failure> {
    let mut secret = [0; 32];
    let mut number = [0; 8];
    for bytes in [&mut secret[..], &mut number[..]] {
        getrandom::fill(bytes).map_err(|error| {
            let why = format!("the system gives no random numbers to sign receipts with: {error}");
            Failure::Unavailable(why.into())
        })?;
    }
    connection.execute_batch(&format!("{META}{STATE}{SPENT}"))?;
    connection.execute(
        "INSERT INTO meta (id, number, secret, ord, noted_us) VALUES (1, ?1, ?2, 0, 0)",
        params![i64::from_le_bytes(number), secret],
    )?;
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}"
    ))?;
    Ok(())
}

/// Makes a file of an older version one of this, in a transaction of the caller's.
pub(crate) fn migrate(connection: &Connection, version: i64) -> Result<(), Failure> {
    match version {
        1 => add_ends(connection)?,
        _ => connection.execute_batch("DROP TABLE spent; UPDATE meta SET spent = 0")?,
    }
    connection.execute_batch(&format!("{SPENT} PRAGMA user_version = {VERSION}"))?;
    Ok(())
}

/// From version 1: states get their ends, and `meta` its columns for receipts.
fn add_ends(connection: &Connection) -> Result<(), Failure> {
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
        // What cannot be read is kept as it is, and said when it is asked for.
        let expires_us = Record::from_bytes(&bytes).map_or(u64::MAX, |record| record.expires_us());
        rows::insert(connection, &rule, &key, &bytes, expires_us)?;
    }
    drop(found);
    drop(older);
    connection.execute_batch("DROP TABLE state_1")?;
    Ok(())
}
