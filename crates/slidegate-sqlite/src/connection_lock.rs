//! A lock on the connection, for the threads of this process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::file_error::FileError;
use crate::lock_wait::LockWait;

/// The connection, which one thread uses at a time. The others wait here and not for the file lock: within a process
/// the system keeps a queue.
#[derive(Debug)]
pub(crate) struct ConnectionLock {
    idle: Mutex<Option<Connection>>,
    released: Condvar,
}

/// The locked connection. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct LockedConnection<'h> {
    lock: &'h ConnectionLock,
    connection: Option<Connection>,
}

impl ConnectionLock {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { idle: Mutex::new(Some(connection)), released: Condvar::new() }
    }

    /// Locks the connection, waiting until the deadline.
    pub(crate) fn lock(&self, lock_wait: &LockWait<'_>) -> Result<LockedConnection<'_>, FileError> {
        let mut idle = self.idle();
        loop {
            // First, so that a notified thread never times out while the connection is idle.
            if let Some(connection) = idle.take() {
                return Ok(LockedConnection { lock: self, connection: Some(connection) });
            }
            let wait_max = lock_wait.wait_max();
            let waiting = self.released.wait_timeout_while(idle, wait_max, |idle| idle.is_none());
            (idle, _) = waiting.unwrap_or_else(PoisonError::into_inner);
            if idle.is_none() {
                // `is_over` may answer other calls, whose wakers must not run under this lock.
                drop(idle);
                if lock_wait.is_over() {
                    return Err(FileError::timed_out());
                }
                idle = self.idle();
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Option<Connection>> {
        // The option stays valid after a thread that held it panicked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockedConnection<'_> {
    pub(crate) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("only dropping it takes the connection")
    }
}

impl Drop for LockedConnection<'_> {
    fn drop(&mut self) {
        *self.lock.idle() = self.connection.take();
        self.lock.released.notify_one();
    }
}
