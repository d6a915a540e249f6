use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::store::{Call, Store, StoreError, Update, UpdateError};
use slidegate::testing::block_on;
use slidegate::{Admission, Algorithm, Charge, Key, Receipt, Rule};

use super::*;
use crate::store::SqliteStore;

/// A temporary directory. Dropping it deletes it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("slidegate-store-file-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("quota.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: impl Into<PathBuf>) -> SqliteStore {
    let options = SqliteOptions::new(path).deadline(Duration::from_secs(60)).unwrap();
    SqliteStore::open_with(&options).unwrap()
}

fn rule() -> Rule {
    Rule::builder("api").limit("9/400d".parse().unwrap()).algorithm(Algorithm::SlidingLog).build().unwrap()
}

/// Charges a unit. Returns what is used then, and the receipt.
fn charge(store: &SqliteStore) -> Result<(u64, Receipt), StoreError> {
    let rule = rule();
    let admission = Admission::new(&[Charge::new(&rule, Key::new("alice").unwrap(), 1)]).unwrap();
    let decision = block_on(store.check(Call::now().blocking(), &admission))?;
    Ok((decision.used().unwrap(), decision.receipt().expect("room for it")))
}

fn used_after_a_charge(store: &SqliteStore) -> u64 {
    charge(store).unwrap().0
}

/// The error of the next call, which looks at the path.
fn error_of(store: &SqliteStore) -> StoreError {
    store.look_at_the_path();
    charge(store).unwrap_err()
}

fn assert_sound(path: &Path) {
    let file = Connection::open(path).unwrap();
    let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn a_deleted_file_is_created_again() {
    for suffixes in [&["", "-wal", "-shm"][..], &["", "-wal"], &[""]] {
        let directory = Directory::new();
        let (path, store) = (directory.file(), open(directory.file()));
        let (used, receipt) = charge(&store).unwrap();
        assert_eq!((used, used_after_a_charge(&store)), (1, 2));
        for suffix in suffixes {
            fs::remove_file(beside(&path, suffix)).unwrap();
        }
        let error = error_of(&store);
        assert!(matches!(&error, StoreError::Unavailable { why } if why.contains("deleted")), "{error}");
        assert!(!error.maybe_charged());
        assert_eq!(used_after_a_charge(&store), 1, "{suffixes:?}");
        let other = open(&path);
        assert_eq!((used_after_a_charge(&other), used_after_a_charge(&store)), (2, 3), "{suffixes:?}");
        let refunded = block_on(store.update(Call::now(), Update::Refund(&receipt)));
        assert!(matches!(refunded, Err(UpdateError::Receipt(_))), "{refunded:?}");
        store.look_at_the_path();
        assert_eq!(used_after_a_charge(&store), 4, "nothing has happened since");
        assert_sound(&path);
    }
}

/// By a copy of another store, while the log of the old one is still there.
#[test]
fn a_file_put_in_its_place_is_opened_without_the_log_of_the_old_one() {
    let (directory, elsewhere) = (Directory::new(), Directory::new());
    let stores = [open(directory.file()), open(directory.file())];
    for _ in 0..6 {
        charge(&stores[0]).unwrap();
    }
    let other = open(elsewhere.file());
    for _ in 0..3 {
        charge(&other).unwrap();
    }
    drop(other);
    let file = Connection::open(elsewhere.file()).unwrap();
    file.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    drop(file);
    fs::rename(elsewhere.file(), directory.file()).unwrap();
    for (number, store) in stores.iter().enumerate() {
        let error = error_of(store);
        assert!(matches!(&error, StoreError::Unavailable { why } if why.contains("replaced")), "{error}");
        assert_eq!(used_after_a_charge(store), 4 + number as u64);
    }
    assert_eq!(used_after_a_charge(&stores[0]), 6);
    assert_eq!(used_after_a_charge(&open(directory.file())), 7);
    assert_sound(&directory.file());
}

#[test]
fn a_file_that_cannot_be_opened_fails_every_call_until_it_can() {
    let directory = Directory::new();
    let inner = directory.0.join("inner");
    fs::create_dir(&inner).unwrap();
    let store = open(inner.join("quota.db"));
    assert_eq!(used_after_a_charge(&store), 1);
    let away = directory.0.join("away");
    fs::rename(&inner, &away).unwrap();
    for _ in 0..3 {
        let error = error_of(&store);
        assert!(
            matches!(&error, StoreError::Unavailable { why } if why.contains("directory does not exist")),
            "{error}"
        );
        let between = charge(&store).unwrap_err();
        assert_eq!(between, error, "until the path is looked at again");
    }
    fs::rename(&away, &inner).unwrap();
    store.look_at_the_path();
    assert_eq!(used_after_a_charge(&store), 2, "the same file is back");
}

#[test]
fn a_file_of_another_program_in_its_place_is_refused_and_left_alone() {
    let directory = Directory::new();
    let store = open(directory.file());
    charge(&store).unwrap();
    let foreign = directory.0.join("photos.db");
    let photos = Connection::open(&foreign).unwrap();
    photos.execute_batch("CREATE TABLE photos (id)").unwrap();
    drop(photos);
    let bytes = fs::read(&foreign).unwrap();
    fs::rename(&foreign, directory.file()).unwrap();
    for _ in 0..2 {
        let error = error_of(&store);
        assert!(
            matches!(&error, StoreError::Refused { why, .. } if why.contains("another program")),
            "{error}"
        );
    }
    assert!(fs::read(directory.file()).unwrap() == bytes);
}

#[test]
fn the_path_is_looked_at_every_half_second() {
    let directory = Directory::new();
    let clock = slidegate::time::SystemClock::new();
    let until = crate::lock_wait::Deadline::after(&clock, Duration::from_secs(60));
    let lock_wait = &mut LockWait::new(&clock, until);
    let mut file = StoreFile::open(&SqliteOptions::new(directory.file()), lock_wait).unwrap();
    file.current(1_000_000, lock_wait).unwrap();
    fs::remove_file(directory.file()).unwrap();
    assert!(file.current(1_499_999, lock_wait).is_ok());
    assert!(file.current(1_500_000, lock_wait).is_err());
    assert!(file.current(1_500_001, lock_wait).is_ok());
}
