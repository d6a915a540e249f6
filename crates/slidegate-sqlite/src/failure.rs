//! What an error of SQLite means for the call that it happened to.

use rusqlite::ErrorCode;
use slidegate::algorithm::BytesError;
use slidegate::store::{StoreError, UpdateError};

/// What failed. None of it has charged anything, but for [`Failure::Unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Another process has the lock, or has written since we looked: try again.
    Busy,
    /// It was not done, and may be later.
    Unavailable(Box<str>),
    /// It was not done, and would not be if it were asked again.
    Refused(Box<str>),
    /// It failed while it was being made durable: perhaps it is, perhaps not.
    Unknown(Box<str>),
}

impl Failure {
    /// The deadline has passed.
    pub(crate) fn timed_out() -> Self {
        let why = "timed out: other processes or earlier calls used the file until the deadline; raise the \
                   deadline, or try again";
        Self::Unavailable(why.into())
    }

    /// As many asynchronous calls as may wait for their turn.
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

    /// The thread of the store panicked, before or after it made the charge durable.
    pub(crate) fn panicked() -> Self {
        Self::Unknown(
            "the store's thread panicked in this call; this is a defect of slidegate, or of the clock".into(),
        )
    }

    /// Of the last step, which makes everything durable.
    pub(crate) fn at_commit(error: rusqlite::Error) -> Self {
        match Self::from(error) {
            Self::Unavailable(why) => Self::Unknown(why),
            other => other,
        }
    }

    /// Bytes in the file that are no record.
    pub(crate) fn of_bytes(rule: &str, key: &str, error: &BytesError) -> Self {
        let remedy = match error {
            BytesError::Newer { .. } => "",
            _ => "; restore the file from a copy, or reset this key under this rule",
        };
        Self::Refused(format!("rule `{rule}`, key `{key}`: {error}{remedy}").into())
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::from_ref(&error)
    }
}

impl Failure {
    pub(crate) fn from_ref(error: &rusqlite::Error) -> Self {
        use ErrorCode as Code;
        let because = |remedy: &str| Box::from(format!("SQLite says `{error}`; {remedy}"));
        match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed) => Self::Busy,
            Some(Code::DiskFull) => {
                Self::Refused(because("the disk is full: make room, or give a file on another disk"))
            }
            Some(Code::ReadOnly | Code::PermissionDenied | Code::AuthorizationForStatementDenied) => {
                Self::Refused(because("let this user write the file and its directory"))
            }
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Refused(because(
                "the file is damaged: restore it from a copy, or move it away to begin anew",
            )),
            Some(Code::TooBig) => Self::Refused(because("the log is too long: use compact-log")),
            Some(Code::CannotOpen | Code::SystemIoFailure | Code::OutOfMemory) => {
                Self::Unavailable(because("see the system's log"))
            }
            _ => Self::Unavailable(because("this is a defect of slidegate, or of the file")),
        }
    }
}

/// What callers are told once it is not tried again.
impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Busy => Failure::timed_out().into(),
            Failure::Unavailable(why) => Self::Unavailable { why },
            Failure::Refused(why) => Self::Refused { why },
            Failure::Unknown(why) => Self::Ambiguous { why },
        }
    }
}

impl From<Failure> for UpdateError {
    fn from(failure: Failure) -> Self {
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
    fn only_what_fails_at_the_commit_leaves_the_charge_open() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_READONLY, ffi::SQLITE_CORRUPT, ffi::SQLITE_NOTADB] {
            for failure in [Failure::from(error(code)), Failure::at_commit(error(code))] {
                assert!(matches!(StoreError::from(failure), StoreError::Refused { .. }), "{code}");
            }
        }
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_CANTOPEN, ffi::SQLITE_NOMEM] {
            assert!(!StoreError::from(Failure::from(error(code))).maybe_charged(), "{code}");
            assert!(StoreError::from(Failure::at_commit(error(code))).maybe_charged(), "{code}");
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_BUSY_SNAPSHOT, ffi::SQLITE_BUSY_RECOVERY] {
            assert_eq!(Failure::from(error(code)), Failure::Busy);
        }
        assert!(!StoreError::from(Failure::Busy).maybe_charged());
    }
}
