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
        let mut idle = self.lock();
        loop {
            // First, so that the one who was notified never leaves without it while others wait.
            if let Some(connection) = idle.take() {
                return Ok(Held { hold: self, connection: Some(connection) });
            }
            let stretch = patience.stretch();
            let waiting = self.given_back.wait_timeout_while(idle, stretch, |idle| idle.is_none());
            (idle, _) = waiting.unwrap_or_else(PoisonError::into_inner);
            if idle.is_none() {
                // Looking may answer other calls, whose wakers are not to run under this lock.
                drop(idle);
                if patience.is_over() {
                    return Err(Failure::timed_out());
                }
                idle = self.lock();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        // What is behind the lock is a connection or none, also after a thread that had it panicked.
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
