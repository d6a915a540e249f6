//! Errors of opening a file.

use std::path::PathBuf;

use thiserror::Error;

/// A file that cannot be opened as a store. Its content is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be created or read.
    #[error("store: {} cannot be opened: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error, and the remedy.
        why: Box<str>,
    },
    /// The file, or its directory, cannot be written.
    #[error(
        "store: {} cannot be written: {why}; let this user write the file and its directory, or give another file",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        why: Box<str>,
    },
    /// The file is no SQLite database.
    #[error("store: {} is no SQLite database; give another file, or move this one away", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "store: {} is damaged: {why}; restore it from a copy, or move it away to begin anew (what was used is then \
         forgotten)",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: Box<str>,
    },
    /// The database belongs to another program.
    #[error("store: {} is a database of another program; give a file of its own", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer program has written the file.
    #[error(
        "store: {} is of version {version}, and this program knows versions up to {known}; use the newer slidegate, or \
         give another file",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
        /// The latest version that this program knows.
        known: i64,
    },
    /// Other processes locked the file until the deadline.
    #[error("store: {} is in use by others until the deadline; raise the deadline, or try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}
