//! Tests that need the connection: its sync mode, a full disk, and files in the middle of a write.

use slidegate::store::{Call, RefusalCause, StoreError};
use slidegate::{CheckError, Limiter, Rule};

use crate::store::SqliteStore;
use crate::{Durability, SqliteOptions, file, schema};

/// Bytes of a page.
const PAGE: usize = 4_096;

/// A temporary directory. Dropping it deletes it.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("slidegate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl SqliteStore {
    /// Simulates a disk without room for more pages.
    fn set_pages_max(&self, pages: u32) {
        self.pragma(&format!("max_page_count = {pages}"));
    }

    fn pragma(&self, pragma: &str) -> i64 {
        let lock_wait = &mut self.engine.lock_wait(Call::now()).unwrap();
        let mut locked = self.engine.file.lock(lock_wait).unwrap();
        let open = locked.file().current(0, lock_wait).unwrap();
        open.connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0)).unwrap()
    }

    /// Lets the next call look at the path, as if half a second had passed.
    pub(crate) fn look_at_the_path(&self) {
        let mut locked = self.engine.file.lock(&self.engine.lock_wait(Call::now()).unwrap()).unwrap();
        locked.file().look_at_us = 0;
    }
}

/// 2 is FULL: the log is synced at every commit. 1 is NORMAL: before its pages are moved.
#[test]
fn durability_sets_the_sync_mode_of_sqlite() {
    let directory = Directory::new("sync");
    for (durability, expected) in [(Durability::Full, 2), (Durability::Normal, 1)] {
        let options = SqliteOptions::new(directory.0.join("quota.db")).durability(durability);
        let store = SqliteStore::open_with(&options).unwrap();
        assert_eq!(store.pragma("synchronous"), expected);
    }
}

#[test]
fn a_full_disk_is_an_error_and_nothing_is_charged() {
    let directory = Directory::new("full");
    for durability in [Durability::Full, Durability::Normal] {
        let path = directory.0.join(durability.name());
        let options = SqliteOptions::new(&path).durability(durability);
        let limiter = Limiter::new(SqliteStore::open_with(&options).unwrap());
        let rule = Rule::new("api", "5/400d").unwrap();
        let ask = |name: &str, cost| match limiter.check_n(&rule, name, cost) {
            Ok(decision) => Ok((decision.allowed(), decision.used().unwrap())),
            Err(CheckError::Store(error)) => Err(error),
            Err(other) => panic!("{other}"),
        };
        limiter.store().set_pages_max(8);
        let name = |number: u32| format!("client-{number:0100}");
        let mut fitted = 0;
        let error = loop {
            match ask(&name(fitted), 2) {
                Ok(answer) => assert_eq!(answer, (true, 2)),
                Err(error) => break error,
            }
            fitted += 1;
        };
        assert!(fitted > 10, "{fitted} fitted");
        let StoreError::Refused { cause: RefusalCause::Disk, why } = &error else { panic!("{error}") };
        assert!(why.contains("disk is full"), "{error}");
        assert!(!error.maybe_charged());
        for number in 0..fitted {
            assert_eq!(ask(&name(number), 4).unwrap(), (false, 2), "earlier charges stay");
        }
        assert_eq!(ask(&name(0), 1).unwrap(), (true, 3), "a charge without a new page works");
        limiter.store().set_pages_max(1_000);
        assert_eq!(ask(&name(fitted), 5).unwrap(), (true, 5), "the one that failed was not charged");
        drop(limiter);
        let file = rusqlite::Connection::open(&path).unwrap();
        let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
}

fn ask(limiter: &Limiter<SqliteStore>, name: &str) -> u64 {
    limiter.check(&Rule::new("api", "5/400d").unwrap(), name).unwrap().used().unwrap()
}

/// The first page is written first: for a moment it promises more pages than there are.
#[test]
fn a_file_whose_creator_was_killed_is_created_again() {
    let directory = Directory::new("creating");
    let (path, image) = (directory.0.join("quota.db"), directory.0.join("image.db"));
    let creator = rusqlite::Connection::open(&path).unwrap();
    creator.execute_batch("BEGIN EXCLUSIVE").unwrap();
    schema::create(&creator).unwrap();
    creator.cache_flush().unwrap();
    std::fs::copy(directory.0.join("quota.db-journal"), directory.0.join("image.db-journal")).unwrap();
    creator.execute_batch("COMMIT").unwrap();
    let pages = std::fs::read(&path).unwrap();
    assert!(pages.len() > 2 * PAGE, "{} bytes", pages.len());
    std::fs::write(&image, &pages[..PAGE]).unwrap();
    let store = Limiter::new(SqliteStore::open(&image).unwrap());
    assert_eq!((ask(&store, "alice"), ask(&store, "alice")), (1, 2));
}

/// SQLite keeps the schema that a connection has read. If the file is locked while a statement is prepared, SQLite cannot
/// see that another connection has created the tables since, and reports `no such table`.
#[test]
fn a_connection_that_saw_the_empty_file_knows_the_tables_once_it_is_open() {
    let directory = Directory::new("stale-schema");
    let path = directory.0.join("quota.db");
    let early = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(schema::owner(&early), Ok(schema::FileOwner::Empty));
    drop(SqliteStore::open(&path).unwrap());
    assert_eq!(early.table_exists(None, "state"), Ok(false), "it has read the empty schema only");
    file::prepare(&early, &SqliteOptions::new(&path), false).unwrap();
    assert_eq!(early.table_exists(None, "state"), Ok(true));
}

/// A checkpoint copies the log page by page, the first page first.
#[test]
fn a_file_in_the_middle_of_a_checkpoint_opens() {
    let directory = Directory::new("checkpoint");
    let (path, after) = (directory.0.join("quota.db"), directory.0.join("after.db"));
    let store = Limiter::new(SqliteStore::open(&path).unwrap());
    let pages = std::fs::read(&path).unwrap();
    let name = |number: u32| format!("client-{number:0200}");
    for number in 0..24 {
        ask(&store, &name(number));
    }
    assert!(std::fs::read(&path).unwrap() == pages, "all of it is in the log");
    std::fs::copy(&path, &after).unwrap();
    std::fs::copy(directory.0.join("quota.db-wal"), directory.0.join("after.db-wal")).unwrap();
    let checkpointed = rusqlite::Connection::open(&after).unwrap();
    checkpointed.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    let whole = std::fs::read(&after).unwrap();
    assert!(whole.len() > pages.len());
    let half = [&whole[..PAGE], &pages[PAGE..]].concat();

    let image = directory.0.join("image.db");
    std::fs::write(&image, half).unwrap();
    std::fs::copy(directory.0.join("quota.db-wal"), directory.0.join("image.db-wal")).unwrap();
    let opened = Limiter::new(SqliteStore::open(&image).unwrap());
    assert_eq!((ask(&opened, &name(7)), ask(&opened, &name(23))), (2, 2));
}

/// If some pages are in the log, SQLite does not notice that others are missing, and would write on.
#[test]
fn a_truncated_file_is_an_error_and_stays_unchanged() {
    let directory = Directory::new("cut-off");
    let path = directory.0.join("quota.db");
    let store = Limiter::new(SqliteStore::open(&path).unwrap());
    let name = |number: u32| format!("client-{number:0200}");
    for number in 0..100 {
        ask(&store, &name(number));
    }
    drop(store);
    let checkpointing = rusqlite::Connection::open(&path).unwrap();
    checkpointing.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(checkpointing);
    let store = Limiter::new(SqliteStore::open(&path).unwrap());
    ask(&store, &name(7));
    for log in ["", "-wal"] {
        let image = directory.0.join(format!("image{log}.db"));
        let pages = std::fs::read(&path).unwrap();
        std::fs::write(&image, &pages[..5 * PAGE]).unwrap();
        if !log.is_empty() {
            let logs = ["quota.db-wal", &format!("image{log}.db-wal")].map(|name| directory.0.join(name));
            std::fs::copy(&logs[0], &logs[1]).unwrap();
        }
        let error = SqliteStore::open(&image).unwrap_err();
        assert!(matches!(error, crate::OpenError::Damaged { .. }), "{error}");
        assert!(std::fs::read(&image).unwrap() == pages[..5 * PAGE], "the file stays as it is");
    }
}
