//! Opening the file. Nothing is written before the file is known to be ours.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::directory_lock::lock_directory;
use crate::error::OpenError;
use crate::file_error::FileError;
use crate::lock_wait::LockWait;
use crate::options::{Durability, SqliteOptions};
use crate::schema::{self, FileOwner};
use crate::store_file::{self, OpenFile};

/// Serialises creation: the new file must be closed before another thread opens it, because closing any descriptor of a
/// file releases all locks of the process on it.
static CREATING: Mutex<()> = Mutex::new(());

/// Opens the file. Creates a missing one, and migrates an older version.
pub(crate) fn open(options: &SqliteOptions, lock_wait: &mut LockWait<'_>) -> Result<OpenFile, OpenError> {
    let path = options.path();
    loop {
        create(path, lock_wait)?;
        let id = store_file::id_of(path);
        let connection = connect(options, lock_wait)?;
        if store_file::id_of(path) == id {
            return Ok(OpenFile::new(connection, path, id));
        }
        // It was replaced while it was opened.
        if !lock_wait.pause() {
            return Err(OpenError::Busy { path: path.to_owned() });
        }
    }
}

fn connect(options: &SqliteOptions, lock_wait: &mut LockWait<'_>) -> Result<Connection, OpenError> {
    let path = options.path();
    let about = |error: rusqlite::Error| open_error(path, &error);
    let short = check_header(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(literal(path), flags).map_err(about)?;
    connection.busy_timeout(Duration::ZERO).map_err(about)?;
    if connection.is_readonly("main").map_err(about)? {
        let why = "it may only be read".into();
        return Err(OpenError::ReadOnly { path: path.to_owned(), why });
    }
    // No checkpoint at close: it costs two syncs, even for a short process that was denied.
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        connection.set_db_config(setting, value).map_err(about)?;
    }
    loop {
        match prepare(&connection, options, short) {
            Err(OpenError::Busy { .. }) if lock_wait.pause() => {}
            result => return result.map(|()| connection),
        }
    }
}

/// Applies the settings, and creates or migrates the schema.
pub(crate) fn prepare(
    connection: &Connection,
    options: &SqliteOptions,
    short: bool,
) -> Result<(), OpenError> {
    let path = options.path();
    let about = |error: rusqlite::Error| open_error(path, &error);
    let sync = match options.given_durability() {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    let settings = format!("PRAGMA synchronous = {sync}; PRAGMA wal_autocheckpoint = 0");
    connection.execute_batch(&settings).map_err(about)?;
    // Once more, because the first check did not see the log.
    let owner = schema::owner(connection).map_err(about)?;
    if short && matches!(owner, FileOwner::Ours(_)) {
        check_pages(connection, path)?;
    }
    match owner {
        FileOwner::Ours(schema::VERSION) => {}
        FileOwner::Empty | FileOwner::Ours(1..schema::VERSION) => bring_up_to_date(connection, path)?,
        FileOwner::Ours(version) => return Err(newer(path, version)),
        FileOwner::Foreign => return Err(OpenError::Foreign { path: path.to_owned() }),
    }
    // Last, so that the database identifies itself as ours even without its log.
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(about)?;
    if mode != "wal" {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(about)?;
    }
    schema::load(connection).map_err(about)
}

/// Checks that missing pages are in the log. In a truncated file they are not.
fn check_pages(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let checked = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match checked.map_err(|error| open_error(path, &error))?.lines().last() {
        Some("ok") => Ok(()),
        // The report may be long; its last line is enough.
        why => Err(OpenError::Damaged { path: path.to_owned(), why: why.unwrap_or_default().into() }),
    }
}

/// Creates or migrates the schema. One process does it, the others find it done.
fn bring_up_to_date(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let about = |error: rusqlite::Error| open_error(path, &error);
    connection.execute_batch("BEGIN EXCLUSIVE").map_err(about)?;
    let result = match schema::owner(connection).map_err(about) {
        Ok(FileOwner::Empty) => schema::create(connection).map_err(|error| failed(path, error)),
        Ok(FileOwner::Ours(version @ 1..schema::VERSION)) => {
            schema::migrate(connection, version).map_err(|error| failed(path, error))
        }
        Ok(FileOwner::Ours(_)) => Ok(()),
        Ok(FileOwner::Foreign) => Err(OpenError::Foreign { path: path.to_owned() }),
        Err(error) => Err(error),
    };
    let result = result.and_then(|()| connection.execute_batch("COMMIT").map_err(about));
    if !connection.is_autocommit() {
        // The first error is returned; an error of the rollback adds nothing.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}

/// Creates an empty file that only its owner may read, unless it exists.
fn create(path: &Path, lock_wait: &mut LockWait<'_>) -> Result<(), OpenError> {
    let _one_at_a_time = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let exists = || fs::symlink_metadata(path).is_ok();
    if exists() {
        return regular(path);
    }
    let _locked = lock_directory(path, lock_wait)?;
    if !exists() {
        // Left by a deleted file. Usually there are none; SQLite, too, deletes the log of an empty file.
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(store_file::beside(path, suffix));
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => regular(path),
        Err(error) => Err(not_created(path, &error)),
    }
}

/// Refuses pipes and devices: opening a pipe would block.
fn regular(path: &Path) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            let why = "it is neither a file nor a directory; give a file".into();
            Err(OpenError::Io { path: path.to_owned(), why })
        }
        // Other errors appear when it is opened.
        _ => Ok(()),
    }
}

fn not_created(path: &Path, error: &io::Error) -> OpenError {
    use io::ErrorKind as Kind;
    let path = path.to_owned();
    match error.kind() {
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            OpenError::ReadOnly { path, why: error.to_string().into() }
        }
        Kind::NotFound => {
            let why = "its directory does not exist; create it, or give another file".into();
            OpenError::Io { path, why }
        }
        Kind::StorageFull | Kind::QuotaExceeded => {
            OpenError::Io { path, why: format!("{error}; make room, or give another file").into() }
        }
        _ => OpenError::Io { path, why: format!("{error}; give another file").into() },
    }
}

/// Checks the owner of the file without a lock, journal or log, so that another program's file stays unchanged. Returns
/// whether the file is shorter than its header says, which is normal for a moment during a write.
fn check_header(path: &Path) -> Result<bool, OpenError> {
    let about = |error: rusqlite::Error| open_error(path, &error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable(path), flags).map_err(about)?;
    let (owner, short) = match schema::owner(&connection) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            // With this SQLite reads the first page although others are missing.
            connection.execute_batch("PRAGMA writable_schema = ON").map_err(about)?;
            (schema::owner(&connection).map_err(about)?, true)
        }
        owner => (owner.map_err(about)?, false),
    };
    match owner {
        FileOwner::Ours(version) if version > schema::VERSION => Err(newer(path, version)),
        FileOwner::Ours(_) => Ok(short),
        FileOwner::Empty => {
            // SQLite treats a file of a single byte as empty.
            let single = fs::metadata(path).is_ok_and(|file| file.len() == 1);
            if single { Err(OpenError::NotADatabase { path: path.to_owned() }) } else { Ok(short) }
        }
        FileOwner::Foreign => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

fn newer(path: &Path, version: i64) -> OpenError {
    OpenError::Newer { path: path.to_owned(), version, known: schema::VERSION }
}

/// The path in a form that SQLite does not take for a special name.
fn literal(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// The path as a URI with `immutable=1`, which opens it without locks.
fn immutable(path: &Path) -> PathBuf {
    use std::fmt::Write as _;
    let mut uri = String::from("file:");
    for &byte in literal(path).as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => write!(uri, "%{byte:02X}").expect("writing to a string succeeds"),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

/// An error of SQLite, as an error of opening the file.
fn open_error(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        _ if FileError::from_ref(error) == FileError::Busy => OpenError::Busy { path },
        _ if path.is_dir() => OpenError::Io { path, why: "it is a directory; give a file".into() },
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, why: error.to_string().into() },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            OpenError::ReadOnly { path, why: error.to_string().into() }
        }
        Some(ErrorCode::CannotOpen) => {
            let why = format!("{error}; let this user read and write the file and its directory");
            OpenError::Io { path, why: why.into() }
        }
        Some(ErrorCode::DiskFull) => {
            OpenError::Io { path, why: format!("{error}; make room, or give another file").into() }
        }
        _ => OpenError::Io { path, why: error.to_string().into() },
    }
}

/// An error of creating or migrating the schema, as an error of opening the file.
fn failed(path: &Path, error: FileError) -> OpenError {
    let path = path.to_owned();
    match error {
        FileError::Busy => OpenError::Busy { path },
        FileError::Unavailable(why) | FileError::Unknown(why) => OpenError::Io { path, why },
        FileError::Refused(_, why) => OpenError::Damaged { path, why },
    }
}
