//! Reads and writes the rows of the file.

use rusqlite::{Connection, OptionalExtension, params};
use slidegate::store::{Record, RefusalCause};

use crate::clock_steps;
use crate::file_error::FileError;

/// The most expired rows that one admission deletes.
const SWEPT_MAX: i64 = 8;

/// A number as SQLite stores it. Instants saturate, 292,000 years after 1970.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number from the file. We never write negative numbers; they count as 0.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The record of a key, and the expiry of its row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) record: Record,
    expires_us: i64,
}

/// The bytes of a key, and the epoch in which they were written.
pub(crate) fn bytes_of(
    connection: &Connection,
    rule: &str,
    key: &str,
) -> rusqlite::Result<Option<(Vec<u8>, u64)>> {
    let mut select =
        connection.prepare_cached("SELECT bytes, epoch FROM state WHERE rule = ?1 AND key = ?2")?;
    select.query_row(params![rule, key], |row| Ok((row.get(0)?, row.get(1).map(unsigned)?))).optional()
}

/// The record of a key, on the clock as it is now.
pub(crate) fn load(
    connection: &Connection,
    meta: &Meta,
    rule: &str,
    key: &str,
) -> Result<Option<Row>, FileError> {
    let mut select = connection
        .prepare_cached("SELECT bytes, expires_us, epoch FROM state WHERE rule = ?1 AND key = ?2")?;
    let mut found = select.query(params![rule, key])?;
    let Some(row) = found.next()? else { return Ok(None) };
    let bytes = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
    let record = Record::from_bytes(bytes).map_err(|error| FileError::from_bytes_error(rule, key, &error))?;
    let record = clock_steps::apply(connection, meta, row.get(2).map(unsigned)?, record)?;
    Ok(Some(Row { record, expires_us: row.get(1)? }))
}

/// Writes a record, which has followed the clock. `before` is the expiry of its row, if there is one.
pub(crate) fn save(
    connection: &Connection,
    meta: &Meta,
    rule: &str,
    key: &str,
    record: &Record,
    before: Option<i64>,
) -> Result<(), FileError> {
    let (bytes, expires_us) = (record.to_bytes(), record.expires_us());
    match before {
        None => insert(connection, meta.epoch, rule, key, &bytes, expires_us)?,
        // An unchanged expiry spares a write to the index.
        Some(before) if before == signed(expires_us) => {
            let mut update = connection
                .prepare_cached("UPDATE state SET bytes = ?3, epoch = ?4 WHERE rule = ?1 AND key = ?2")?;
            update.execute(params![rule, key, bytes, signed(meta.epoch)])?;
        }
        Some(_) => {
            let mut update = connection.prepare_cached(
                "UPDATE state SET bytes = ?3, epoch = ?4, expires_us = ?5 WHERE rule = ?1 AND key = ?2",
            )?;
            update.execute(params![rule, key, bytes, signed(meta.epoch), signed(expires_us)])?;
        }
    }
    Ok(())
}

pub(crate) fn insert(
    connection: &Connection,
    epoch: u64,
    rule: &str,
    key: &str,
    bytes: &[u8],
    expires_us: u64,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO state (rule, key, bytes, expires_us, epoch) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    insert.execute(params![rule, key, bytes, signed(expires_us), signed(epoch)]).map(drop)
}

pub(crate) fn delete(connection: &Connection, rule: &str, key: &str) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached("DELETE FROM state WHERE rule = ?1 AND key = ?2")?;
    delete.execute(params![rule, key]).map(drop)
}

impl Row {
    /// The record and the expiry of a row.
    pub(crate) fn split(row: Option<Self>) -> (Option<Record>, Option<i64>) {
        row.map_or((None, None), |row| (Some(row.record), Some(row.expires_us)))
    }
}

/// Deletes a few of the states that had expired by `until_us`.
pub(crate) fn sweep_some(connection: &Connection, until_us: u64) -> rusqlite::Result<()> {
    let mut sweep = connection.prepare_cached(
        "DELETE FROM state WHERE (rule, key) IN \
         (SELECT rule, key FROM state WHERE expires_us <= ?1 ORDER BY expires_us LIMIT ?2)",
    )?;
    sweep.execute(params![signed(until_us), SWEPT_MAX]).map(drop)
}

/// The next keys of a rule after `after`, in order, with their rows.
pub(crate) fn keys_after(
    connection: &Connection,
    meta: &Meta,
    rule: &str,
    after: &str,
    count: usize,
) -> Result<Vec<(String, Row)>, FileError> {
    let mut select = connection.prepare_cached(
        "SELECT key, bytes, expires_us, epoch FROM state WHERE rule = ?1 AND key > ?2 ORDER BY key LIMIT ?3",
    )?;
    let mut found = select.query(params![rule, after, signed(count as u64)])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let (key, expires_us): (String, i64) = (row.get(0)?, row.get(2)?);
        let bytes = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        let record =
            Record::from_bytes(bytes).map_err(|error| FileError::from_bytes_error(rule, &key, &error))?;
        let record = clock_steps::apply(connection, meta, row.get(3).map(unsigned)?, record)?;
        rows.push((key, Row { record, expires_us }));
    }
    Ok(rows)
}

/// The names of all rules with states.
#[cfg(feature = "testing")]
pub(crate) fn rules(connection: &Connection) -> Result<Vec<String>, FileError> {
    let mut select = connection.prepare("SELECT DISTINCT rule FROM state")?;
    Ok(select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// The single row of the table `meta`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meta {
    /// The number of the store in receipts.
    pub(crate) number: u32,
    /// The order of the last charge.
    pub(crate) order: u64,
    /// The latest time, as last stored.
    pub(crate) noted_us: u64,
    /// The latest time at which a receipt was presented.
    pub(crate) presented_us: u64,
    /// Spent receipts on record.
    pub(crate) spent: u64,
    /// How often the clock was set back.
    pub(crate) epoch: u64,
}

impl Meta {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "64 random bits, of which receipts carry the low 32"
            )]
            number: row.get::<_, i64>(0)?.cast_unsigned() as u32,
            order: row.get(1).map(unsigned)?,
            noted_us: row.get(2).map(unsigned)?,
            presented_us: row.get(3).map(unsigned)?,
            spent: row.get(4).map(unsigned)?,
            epoch: row.get(5).map(unsigned)?,
        })
    }

    pub(crate) fn load(connection: &Connection) -> Result<Self, FileError> {
        let sql = "SELECT number, ord, noted_us, presented_us, spent, epoch FROM meta WHERE id = 1";
        let meta = connection.prepare_cached(sql)?.query_row([], Self::read).optional()?;
        meta.ok_or_else(|| {
            FileError::Refused(
                RefusalCause::DamagedStore,
                "the table `meta` of the file is empty; restore it from a copy, or move it away".into(),
            )
        })
    }

    pub(crate) fn save(&self, connection: &Connection) -> Result<(), FileError> {
        let mut update = connection.prepare_cached(
            "UPDATE meta SET ord = ?1, noted_us = ?2, presented_us = ?3, spent = ?4, epoch = ?5 WHERE id = 1",
        )?;
        update.execute([self.order, self.noted_us, self.presented_us, self.spent, self.epoch].map(signed))?;
        Ok(())
    }
}
