//! One atomic step on the file.

use rusqlite::Connection;

use crate::failure::Failure;
use crate::patience::Patience;

/// How a step ends.
#[derive(Debug)]
pub(crate) enum End<T> {
    /// Everything it wrote stays.
    Keep(T),
    /// It wrote nothing.
    Nothing(T),
}

/// When a step takes the write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With its first write: who writes nothing waits for nobody. If somebody else wrote since it first looked, it has
    /// not written yet either, and is begun again with the lock in hand.
    AtFirstWrite,
    /// At once.
    AtOnce,
}

/// Runs `step` in one transaction, again and again until it meets nobody; it is then kept, or nothing of it is.
pub(crate) fn transact<T>(
    connection: &Connection,
    patience: &mut Patience<'_>,
    begin: Begin,
    mut step: impl FnMut(&Connection) -> Result<End<T>, Failure>,
) -> Result<End<T>, Failure> {
    let mut begin = begin;
    loop {
        match attempt(connection, begin, &mut step) {
            Err(Failure::Busy) if begin == Begin::AtFirstWrite => begin = Begin::AtOnce,
            Err(Failure::Busy) if patience.pause() => {}
            Err(Failure::Busy) => return Err(Failure::timed_out()),
            done => return done,
        }
    }
}

fn attempt<T>(
    connection: &Connection,
    begin: Begin,
    step: &mut impl FnMut(&Connection) -> Result<End<T>, Failure>,
) -> Result<End<T>, Failure> {
    execute(
        connection,
        match begin {
            Begin::AtFirstWrite => "BEGIN",
            Begin::AtOnce => "BEGIN IMMEDIATE",
        },
    )?;
    let open = Open(connection);
    match step(connection)? {
        End::Nothing(value) => Ok(End::Nothing(value)),
        End::Keep(value) => {
            execute(connection, "COMMIT").map_err(Failure::at_commit)?;
            drop(open);
            Ok(End::Keep(value))
        }
    }
}

/// A transaction that ends with it, whatever becomes of the step.
struct Open<'c>(&'c Connection);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // A failed rollback leaves a transaction open, and the next BEGIN says so.
        if !self.0.is_autocommit() {
            let _ = execute(self.0, "ROLLBACK");
        }
    }
}

fn execute(connection: &Connection, sql: &'static str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.raw_execute().map(drop)
}
