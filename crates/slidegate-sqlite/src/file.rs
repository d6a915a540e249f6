//! Opening the file: nothing is touched before it is known to be ours.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::OpenError;
use crate::failure::Failure;
use crate::options::{Durability, SqliteOptions};
use crate::patience::Patience;
use crate::schema::{self, Whose};

/// A file of ours is created and closed before anybody in this process opens it: closing any descriptor of a file gives up
/// the locks that the process has on it.
static CREATING: Mutex<()> = Mutex::new(());

/// Opens the file, creates it where there is none, brings it to the present version.
pub(crate) fn open(options: &SqliteOptions, patience: &mut Patience<'_>) -> Result<Connection, OpenError> {
    let path = options.path();
    create(path)?;
    let about = |error: rusqlite::Error| explained(path, &error);
    let short = sniff(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(literal(path), flags).map_err(about)?;
    connection.busy_timeout(Duration::ZERO).map_err(about)?;
    if connection.is_readonly("main").map_err(about)? {
        let why = "it may only be read".into();
        return Err(OpenError::ReadOnly { path: path.to_owned(), why });
    }
    // The last process to close it would move the log into the database: two syncs for every short process, also for one that was
    // denied.
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        connection.set_db_config(setting, value).map_err(about)?;
    }
    loop {
        match prepare(&connection, options, short) {
            Err(OpenError::Busy { .. }) if patience.pause() => {}
            done => return done.map(|()| connection),
        }
    }
}

fn prepare(connection: &Connection, options: &SqliteOptions, short: bool) -> Result<(), OpenError> {
    let path = options.path();
    let about = |error: rusqlite::Error| explained(path, &error);
    let sync = match options.is_durable() {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    let settings = format!("PRAGMA synchronous = {sync}; PRAGMA wal_autocheckpoint = 0");
    connection.execute_batch(&settings).map_err(about)?;
    // Once more, as what is in a log was not seen before.
    let whose = schema::whose(connection).map_err(about)?;
    if short && matches!(whose, Whose::Ours(_)) {
        check_pages(connection, path)?;
    }
    match whose {
        Whose::Ours(schema::VERSION) => {}
        Whose::Empty | Whose::Ours(1..schema::VERSION) => bring_up_to_date(connection, path)?,
        Whose::Ours(version) => return Err(newer(path, version)),
        Whose::Foreign => return Err(OpenError::Foreign { path: path.to_owned() }),
    }
    // Last, so that the database itself, without its log, is known to be ours from the first moment on.
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(about)?;
    if mode != "wal" {
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(about)?;
    }
    Ok(())
}

/// Pages that are missing in the file are in its log, unless the file was cut off.
fn check_pages(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| explained(path, &error))?.lines().last() {
        Some("ok") => Ok(()),
        // What it found may be a page of text; it is one sentence here.
        why => Err(OpenError::Damaged { path: path.to_owned(), why: why.unwrap_or_default().into() }),
    }
}

/// One process does it, the others find it done.
fn bring_up_to_date(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let about = |error: rusqlite::Error| explained(path, &error);
    connection.execute_batch("BEGIN EXCLUSIVE").map_err(about)?;
    let done = match schema::whose(connection).map_err(about) {
        Ok(Whose::Empty) => schema::create(connection).map_err(|failure| failed(path, failure)),
        Ok(Whose::Ours(version @ 1..schema::VERSION)) => {
            schema::migrate(connection, version).map_err(|failure| failed(path, failure))
        }
        Ok(Whose::Ours(_)) => Ok(()),
        Ok(Whose::Foreign) => Err(OpenError::Foreign { path: path.to_owned() }),
        Err(error) => Err(error),
    };
    let done = done.and_then(|()| connection.execute_batch("COMMIT").map_err(about));
    if !connection.is_autocommit() {
        // What failed is told; a rollback that fails as well adds nothing to it.
        let _ = connection.execute_batch("ROLLBACK");
    }
    done
}

/// Makes an empty file that only its owner may read, unless there is a file.
fn create(path: &Path) -> Result<(), OpenError> {
    let _one_at_a_time = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Opening a pipe waits for somebody at its other end.
fn regular(path: &Path) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let why = "it is neither a file nor a directory; give a file".into();
            Err(OpenError::Io { path: path.to_owned(), why })
        }
        // What else may be wrong with it is found out when it is opened.
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

/// Looks at what is there without a lock, a journal or a log: what is not ours stays as it is, byte for byte. Says
/// whether it is shorter than its first page promises, as it is for a moment while somebody writes to it.
fn sniff(path: &Path) -> Result<bool, OpenError> {
    let about = |error: rusqlite::Error| explained(path, &error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable(path), flags).map_err(about)?;
    let (whose, short) = match schema::whose(&connection) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            // With it SQLite looks at the first page although others are missing.
            connection.execute_batch("PRAGMA writable_schema = ON").map_err(about)?;
            (schema::whose(&connection).map_err(about)?, true)
        }
        whose => (whose.map_err(about)?, false),
    };
    match whose {
        Whose::Ours(version) if version > schema::VERSION => Err(newer(path, version)),
        Whose::Ours(_) => Ok(short),
        Whose::Empty => {
            // SQLite takes a single byte for nothing.
            let single = fs::metadata(path).is_ok_and(|file| file.len() == 1);
            if single { Err(OpenError::NotADatabase { path: path.to_owned() }) } else { Ok(short) }
        }
        Whose::Foreign => Err(OpenError::Foreign { path: path.to_owned() }),
    }
}

fn newer(path: &Path, version: i64) -> OpenError {
    OpenError::Newer { path: path.to_owned(), version, known: schema::VERSION }
}

/// The path in a form in which SQLite finds nothing else than a path.
fn literal(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// The path as a URI of a file that nobody changes.
fn immutable(path: &Path) -> PathBuf {
    use std::fmt::Write as _;
    let mut uri = String::from("file:");
    for &byte in literal(path).as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(byte.into()),
            byte if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            byte => write!(uri, "%{byte:02X}").expect("a text takes all that is written to it"),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}

/// An error of SQLite as one about the file.
fn explained(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        _ if Failure::from_ref(error) == Failure::Busy => OpenError::Busy { path },
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

/// A failure of making the file ours as one about the file.
fn failed(path: &Path, failure: Failure) -> OpenError {
    let path = path.to_owned();
    match failure {
        Failure::Busy => OpenError::Busy { path },
        Failure::Unavailable(why) | Failure::Unknown(why) => OpenError::Io { path, why },
        Failure::Refused(why) => OpenError::Damaged { path, why },
    }
}
