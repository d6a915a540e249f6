//! A lock on the directory of a file, against other processes that create or replace the file at the same time.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::OpenError;
use crate::lock_wait::LockWait;

/// Locks the directory of the file at `path` until the result is dropped. `None` where the system has no such locks, or this
/// user may not read the directory.
pub(crate) fn lock_directory(path: &Path, lock_wait: &mut LockWait<'_>) -> Result<Option<File>, OpenError> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let Ok(directory) = File::open(directory.unwrap_or(Path::new("."))) else { return Ok(None) };
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(Some(directory)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if lock_wait.pause() => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Busy { path: path.to_owned() }),
        }
    }
}
