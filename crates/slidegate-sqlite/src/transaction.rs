//! Transactions on the file, with retries while it is locked.

use rusqlite::Connection;

use crate::file_error::FileError;
use crate::lock_wait::LockWait;

/// How the transaction of a step ends.
#[derive(Debug)]
pub(crate) enum TransactionEnd<T> {
    /// Everything it wrote stays.
    Commit(T),
    /// It wrote nothing.
    Rollback(T),
}

impl<T> TransactionEnd<T> {
    /// The same value, and whatever was written stays.
    pub(crate) fn committed(self) -> Self {
        let (Self::Commit(value) | Self::Rollback(value)) = self;
        Self::Commit(value)
    }
}

/// When a transaction takes the write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// With its first write, so that a step that writes nothing never waits. If another process wrote since the first
    /// read, the step has written nothing, and is retried as [`LockMode::Immediate`].
    Deferred,
    /// At its start.
    Immediate,
}

/// Runs `step` in one transaction. Retries while the file is locked, until the deadline.
pub(crate) fn transact<T>(
    connection: &Connection,
    lock_wait: &mut LockWait<'_>,
    lock_mode: LockMode,
    mut step: impl FnMut(&Connection) -> Result<TransactionEnd<T>, FileError>,
) -> Result<TransactionEnd<T>, FileError> {
    let mut lock_mode = lock_mode;
    loop {
        match attempt(connection, lock_mode, &mut step) {
            Err(FileError::Busy) if lock_mode == LockMode::Deferred => lock_mode = LockMode::Immediate,
            Err(FileError::Busy) if lock_wait.pause() => {}
            Err(FileError::Busy) => return Err(FileError::timed_out()),
            result => return result,
        }
    }
}

fn attempt<T>(
    connection: &Connection,
    lock_mode: LockMode,
    step: &mut impl FnMut(&Connection) -> Result<TransactionEnd<T>, FileError>,
) -> Result<TransactionEnd<T>, FileError> {
    execute(
        connection,
        match lock_mode {
            LockMode::Deferred => "BEGIN",
            LockMode::Immediate => "BEGIN IMMEDIATE",
        },
    )?;
    let open = OpenTransaction(connection);
    match step(connection)? {
        TransactionEnd::Rollback(value) => Ok(TransactionEnd::Rollback(value)),
        TransactionEnd::Commit(value) => {
            execute(connection, "COMMIT").map_err(FileError::at_commit)?;
            drop(open);
            Ok(TransactionEnd::Commit(value))
        }
    }
}

/// Rolls the transaction back when dropped, unless it was committed.
struct OpenTransaction<'c>(&'c Connection);

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        // After a failed rollback the transaction stays open, and the next BEGIN fails.
        if !self.0.is_autocommit() {
            let _ = execute(self.0, "ROLLBACK");
        }
    }
}

fn execute(connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(drop)
}
