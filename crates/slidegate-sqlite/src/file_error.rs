//! Errors of a call on the file, and whether it may have charged.

use std::path::Path;

use rusqlite::ErrorCode;
use slidegate::Key;
use slidegate::algorithm::BytesError;
use slidegate::store::{RefusalCause, StoreError, UpdateError};

use crate::error::OpenError;

/// An error of one call. Nothing was charged, except perhaps with [`FileError::Unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileError {
    /// Another process has the lock, or has written since we read: retry.
    Busy,
    /// Not executed, and a later try may succeed.
    Unavailable(Box<str>),
    /// Not executed, and a retry would fail too.
    Refused(RefusalCause, Box<str>),
    /// The commit failed: the charge may be durable or not.
    Unknown(Box<str>),
}

impl FileError {
    /// The deadline has passed.
    pub(crate) fn timed_out() -> Self {
        let why = "timed out: other processes or earlier calls used the file until the deadline; raise the \
                   deadline, or try again";
        Self::Unavailable(why.into())
    }

    /// The queue of asynchronous calls is full.
    pub(crate) fn queue_full(max: usize) -> Self {
        let why = format!(
            "{max} calls of this process wait for the file, its maximum; send fewer at once, or try later"
        );
        Self::Unavailable(why.into())
    }

    pub(crate) fn no_thread(error: &std::io::Error) -> Self {
        let why =
            format!("the system gives no thread to use the file on: {error}; raise the limit of threads");
        Self::Unavailable(why.into())
    }

    /// The path names another file than the one that was open.
    pub(crate) fn changed(path: &Path, change: &str) -> Self {
        let why = format!(
            "{} was {change} while it was in use; the file that is there now was opened, with what is counted in it; try \
             again",
            path.display()
        );
        Self::Unavailable(why.into())
    }

    /// The file was deleted or replaced, and there is none that can be opened.
    pub(crate) fn not_opened(error: &OpenError) -> Self {
        let text = error.to_string();
        let why = text.strip_prefix("store: ").unwrap_or(&text).into();
        match error {
            OpenError::Busy { .. } | OpenError::Io { .. } | OpenError::ReadOnly { .. } => {
                Self::Unavailable(why)
            }
            // Damaged, or not a file of ours or of this version: nothing can be counted in it.
            _ => Self::Refused(RefusalCause::DamagedStore, why),
        }
    }

    /// The store's thread panicked, before or after the commit.
    pub(crate) fn panicked() -> Self {
        Self::Unknown(
            "the store's thread panicked in this call; this is a defect of slidegate, or of the clock".into(),
        )
    }

    /// An error of the commit.
    pub(crate) fn at_commit(error: rusqlite::Error) -> Self {
        match Self::from(error) {
            Self::Unavailable(why) => Self::Unknown(why),
            other => other,
        }
    }

    /// A state in the file that cannot be decoded.
    pub(crate) fn from_bytes_error(rule: &str, key: &str, error: &BytesError) -> Self {
        let (cause, remedy) = match error {
            BytesError::Newer { .. } => (RefusalCause::NewerVersion, ""),
            _ => (
                RefusalCause::DamagedState,
                "; restore the file from a copy, or reset this key under this rule",
            ),
        };
        let key = Key::from_identity(key).map_or_else(
            |_| key.to_owned(),
            |key| match key.tag() {
                Some(tag) => format!("{key}` with the tag `{tag}"),
                None => key.to_string(),
            },
        );
        Self::Refused(cause, format!("rule `{rule}`, key `{key}`: {error}{remedy}").into())
    }
}

impl From<rusqlite::Error> for FileError {
    fn from(error: rusqlite::Error) -> Self {
        Self::from_ref(&error)
    }
}

impl FileError {
    pub(crate) fn from_ref(error: &rusqlite::Error) -> Self {
        use ErrorCode as Code;
        let because = |remedy: &str| Box::from(format!("SQLite says `{error}`; {remedy}"));
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed) => Self::Busy,
            Some(Code::DiskFull) => Self::Refused(
                RefusalCause::Disk,
                because("the disk is full: make room, or give a file on another disk"),
            ),
            Some(Code::ReadOnly | Code::PermissionDenied | Code::AuthorizationForStatementDenied) => {
                Self::Refused(
                    RefusalCause::ReadOnly,
                    because("let this user write the file and its directory"),
                )
            }
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Refused(
                RefusalCause::DamagedStore,
                because("the file is damaged: restore it from a copy, or move it away to begin anew"),
            ),
            Some(Code::TooBig) => {
                Self::Refused(RefusalCause::Other, because("the log is too long: use compact-log"))
            }
            Some(Code::CannotOpen | Code::SystemIoFailure | Code::OutOfMemory) => {
                Self::Unavailable(because("see the system's log"))
            }
            _ => Self::Unavailable(because("this is a defect of slidegate, or of the file")),
        }
    }
}

/// The caller's error once there is no retry.
impl From<FileError> for StoreError {
    fn from(failure: FileError) -> Self {
        match failure {
            FileError::Busy => FileError::timed_out().into(),
            FileError::Unavailable(why) => Self::Unavailable { why },
            FileError::Refused(cause, why) => Self::Refused { cause, why },
            FileError::Unknown(why) => Self::Ambiguous { why },
        }
    }
}

impl From<FileError> for UpdateError {
    fn from(failure: FileError) -> Self {
        StoreError::from(failure).into()
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn error(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn only_an_error_of_the_commit_may_have_charged() {
        for (code, expected) in [
            (ffi::SQLITE_FULL, RefusalCause::Disk),
            (ffi::SQLITE_READONLY, RefusalCause::ReadOnly),
            (ffi::SQLITE_CORRUPT, RefusalCause::DamagedStore),
            (ffi::SQLITE_NOTADB, RefusalCause::DamagedStore),
        ] {
            for failure in [FileError::from(error(code)), FileError::at_commit(error(code))] {
                let error = StoreError::from(failure);
                assert!(matches!(error, StoreError::Refused { cause, .. } if cause == expected), "{code}");
            }
        }
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CANTOPEN, ffi::SQLITE_NOMEM] {
            assert!(!StoreError::from(FileError::from(error(code))).maybe_charged(), "{code}");
            assert!(StoreError::from(FileError::at_commit(error(code))).maybe_charged(), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_BUSY_RECOVERY] {
            assert_eq!(FileError::from(error(code)), FileError::Busy);
        }
        assert!(!StoreError::from(FileError::Busy).maybe_charged());
    }
}
