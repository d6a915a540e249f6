//! One connection, and the threads of this process that want it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use crate::failure::Failure;
use crate::patience::Patience;

/// A connection that one thread has at a time. The others wait here, not at the file: within a process it is the system
/// that keeps the queue.
#[derive(Debug)]
pub(crate) struct Hold {
    idle: Mutex<Option<Connection>>,
    given_back: Condvar,
}

/// The connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held<'h> {
    hold: &'h Hold,
    connection: Option<Connection>,
}

impl Hold {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { idle: Mutex::new(Some(connection)), given_back: Condvar::new() }
    }

    pub(crate) fn take(&self, patience: &Patience<'_>) -> Result<Held<'_>, Failure> {
        let waiting = self.given_back.wait_timeout_while(self.lock(), patience.left(), |idle| idle.is_none());
        let (mut idle, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let connection = Some(idle.take().ok_or_else(Failure::timed_out)?);
        Ok(Held { hold: self, connection })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        // What is behind the lock is a connection or none, whatever happened to whoever had it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held<'_> {
    pub(crate) fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is given back when this is dropped, and not before")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.hold.lock() = self.connection.take();
        self.hold.given_back.notify_one();
    }
}
