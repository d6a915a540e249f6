//! Why a file is not opened.

use std::path::PathBuf;

use thiserror::Error;

/// Why a file is not used as a store. What was in it is still in it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be made or read.
    #[error("store: {} cannot be opened: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What stood in the way, and what to do about it.
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
        /// What the system says.
        why: Box<str>,
    },
    /// Bytes that are no database.
    #[error("store: {} is no SQLite database; give another file, or move this one away", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// A database that is damaged.
    #[error(
        "store: {} is damaged: {why}; restore it from a copy, or move it away to begin anew (what was used is then \
         forgotten)",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: Box<str>,
    },
    /// A database of another program.
    #[error("store: {} is a database of another program; give a file of its own", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file that a later program has written.
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
        /// The latest version that is known here.
        known: i64,
    },
    /// Others were using the file until the deadline.
    #[error("store: {} is in use by others until the deadline; raise the deadline, or try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
}
