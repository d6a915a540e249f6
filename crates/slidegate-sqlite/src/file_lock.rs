//! A lock on the open file, for the threads of this process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::file_error::FileError;
use crate::lock_wait::LockWait;
use crate::store_file::StoreFile;

/// The file, which one thread uses at a time. The others wait here and not for the file lock: within a process
/// the system keeps a queue.
#[derive(Debug)]
pub(crate) struct FileLock {
    idle: Mutex<Option<StoreFile>>,
    released: Condvar,
}

/// The locked file. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct LockedFile<'h> {
    lock: &'h FileLock,
    file: Option<StoreFile>,
}

impl FileLock {
    pub(crate) fn new(file: StoreFile) -> Self {
        Self { idle: Mutex::new(Some(file)), released: Condvar::new() }
    }

    /// Locks the file, waiting until the deadline.
    pub(crate) fn lock(&self, lock_wait: &LockWait<'_>) -> Result<LockedFile<'_>, FileError> {
        let mut idle = self.idle();
        loop {
            // First, so that a notified thread never times out while the file is idle.
            if let Some(file) = idle.take() {
                return Ok(LockedFile { lock: self, file: Some(file) });
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

    fn idle(&self) -> MutexGuard<'_, Option<StoreFile>> {
        // The option stays valid after a thread that held it panicked.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockedFile<'_> {
    pub(crate) fn file(&mut self) -> &mut StoreFile {
        self.file.as_mut().expect("only dropping it takes the file")
    }
}

impl Drop for LockedFile<'_> {
    fn drop(&mut self) {
        *self.lock.idle() = self.file.take();
        self.lock.released.notify_one();
    }
}
