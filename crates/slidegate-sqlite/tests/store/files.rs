//! Files that are missing, foreign, damaged, newer, older, or read-only.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::child::{ChildOrders, ChildReport};
use crate::common::*;
use rusqlite::Connection;
use slidegate::store::{Call, Record, Store, StoreError, Update};
use slidegate::testing::{Rng, block_on};
use slidegate::{Algorithm, Charge};
use slidegate_sqlite::{Durability, OpenError, SqliteStore};

fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    });
    files.collect()
}

/// Opens a file that must be refused, and checks that nothing has changed.
fn refused(directory: &Directory) -> OpenError {
    let before = contents(directory.path());
    let opened = SqliteStore::open_with(&options(directory.file()));
    let error = opened.expect_err(&format!("{} files there", before.len()));
    assert!(contents(directory.path()) == before, "{error}: and something was changed");
    let text = error.to_string();
    assert!(text.contains("quota.db") && text.starts_with("store: "), "{text}");
    error
}

#[test]
fn bytes_that_are_no_database_are_left_alone() {
    for (seed, len) in [1, 15, 99, 100, 511, 512, 4_096, 70_000].into_iter().enumerate() {
        let directory = Directory::new();
        let mut rng = Rng::new(seed as u64);
        let noise: Vec<u8> = (0..len).map(|_| u8::try_from(rng.below(256)).unwrap()).collect();
        std::fs::write(directory.file(), noise).unwrap();
        let error = refused(&directory);
        assert!(matches!(error, OpenError::NotADatabase { .. }), "{len} bytes: {error}");
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let makers: [fn(&Connection); 3] = [
        |other| other.execute_batch("CREATE TABLE photos (id)").unwrap(),
        |other| other.execute_batch("PRAGMA application_id = 77; CREATE TABLE state (id)").unwrap(),
        |other| {
            other.execute_batch("CREATE TABLE photos (id)").unwrap();
            other.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        },
    ];
    for make in makers {
        let directory = Directory::new();
        let other = Connection::open(directory.file()).unwrap();
        make(&other);
        drop(other);
        let error = refused(&directory);
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    }
}

/// All content of another program may still be in its log.
#[test]
fn a_log_of_another_program_is_left_alone() {
    for version in [0, 1, 2, 3, 4] {
        let (written, directory) = (Directory::new(), Directory::new());
        let other = Connection::open(written.file()).unwrap();
        other.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        other.execute_batch(&format!("CREATE TABLE state (id); PRAGMA user_version = {version}")).unwrap();
        // As after a crash: there was no checkpoint.
        for (name, bytes) in contents(written.path()).into_iter().filter(|(name, _)| !name.ends_with("-shm"))
        {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        let before = contents(directory.path());
        assert!(before.len() == 2, "a database and its log");
        let error = SqliteStore::open_with(&options(directory.file())).expect_err("another's");
        assert!(matches!(error, OpenError::Foreign { .. }), "version {version}: {error}");
        let after = contents(directory.path());
        assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)), "something was changed");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_blocking() {
    let directory = Directory::new();
    assert!(Command::new("mkfifo").arg(directory.file()).status().unwrap().success());
    let error = SqliteStore::open_with(&options(directory.file())).expect_err("no file");
    assert!(error.to_string().contains("neither a file nor a directory"), "{error}");
}

/// The log lies beside the target of a link.
#[cfg(unix)]
#[test]
fn checkpoints_work_through_a_link() {
    let (real, directory) = (Directory::new(), Directory::new());
    drop(open(real.file()));
    std::os::unix::fs::symlink(real.file(), directory.file()).unwrap();
    let store = SqliteStore::open_with(&options(directory.file()).durability(Durability::Normal)).unwrap();
    let rule = rule("api", &["1000/1h"], Algorithm::SlidingCounter);
    for _ in 0..400 {
        check(&store, Call::now(), &rule, 1);
    }
    let mut log = real.file().clone().into_os_string();
    log.push("-wal");
    let bytes = std::fs::metadata(log).unwrap().len();
    assert!(bytes < 1 << 20, "{bytes} bytes");
}

#[test]
fn a_newer_file_is_refused_and_unchanged() {
    let directory = Directory::new();
    drop(open(directory.file()));
    let newer = Connection::open(directory.file()).unwrap();
    newer.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA user_version = 5").unwrap();
    drop(newer);
    let error = refused(&directory);
    assert!(matches!(error, OpenError::Newer { version: 5, known: 4, .. }), "{error}");
    assert!(error.to_string().contains("version 5"), "{error}");
}

/// A running program finds a row that a newer one has written.
#[test]
fn a_newer_or_damaged_record_is_an_error_and_never_a_reset() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5/400d"], Algorithm::SlidingLog));
    let other = Connection::open(directory.file()).unwrap();
    for (first_byte, word) in [(9, "version 9"), (0, "damaged")] {
        block_on(store.update(Call::now(), Update::Reset(&rule, key("alice")))).unwrap();
        check(&store, Call::now(), &rule, 5);
        let mut bytes: Vec<u8> = other.query_row("SELECT bytes FROM state", [], |row| row.get(0)).unwrap();
        bytes[0] = first_byte;
        other.execute("UPDATE state SET bytes = ?1", [&bytes]).unwrap();
        let error = ask(&store, Call::now(), &rule, 1).unwrap_err();
        assert!(matches!(&error, StoreError::Refused { why, .. } if why.contains(word)), "{error}");
        assert!(!error.maybe_charged());
        let kept: Vec<u8> = other.query_row("SELECT bytes FROM state", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, bytes);
        let reset = block_on(store.update(Call::now(), Update::Reset(&rule, key("alice"))));
        assert_eq!(reset.is_ok(), first_byte == 0, "what a newer version wrote is not ours to forget");
        other.execute("DELETE FROM state", []).unwrap();
    }
}

#[test]
fn a_damaged_page_is_an_error_and_nothing_is_admitted() {
    let directory = Directory::new();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    {
        let store = open(directory.file());
        for number in 0..200 {
            let name = format!("client-{number}");
            block_on(store.check(Call::now(), &admission(&[(&rule, &name, 5)]))).unwrap();
        }
    }
    let other = Connection::open(directory.file()).unwrap();
    other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(other);
    let whole = std::fs::read(directory.file()).unwrap();
    let pages = whole.len() / 4_096;
    let (mut told, mut rng) = (0, Rng::new(5));
    for page in 0..pages {
        let mut damaged = whole.clone();
        for byte in &mut damaged[page * 4_096..][..4_096] {
            *byte = u8::try_from(rng.below(256)).unwrap();
        }
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", directory.file().display()));
        }
        std::fs::write(directory.file(), &damaged).unwrap();
        let store = match SqliteStore::open_with(&options(directory.file())) {
            Ok(store) => store,
            Err(error) => {
                assert!(
                    matches!(error, OpenError::NotADatabase { .. } | OpenError::Damaged { .. }),
                    "{error}"
                );
                told += 1;
                continue;
            }
        };
        let mut failed = 0;
        for number in 0..200 {
            let name = format!("client-{number}");
            match block_on(store.check(Call::now(), &admission(&[(&rule, &name, 1)]))) {
                Ok(outcome) => assert!(!outcome.allowed(), "page {page}: {name} may spend again"),
                Err(StoreError::Refused { why, .. }) if why.contains("damaged") => failed += 1,
                Err(error) => panic!("page {page}: {error}"),
            }
        }
        told += usize::from(failed > 0);
    }
    assert!(told >= 3, "of {pages} damaged pages {told} were noticed");
}

#[test]
fn a_missing_or_unsuitable_directory_is_named() {
    let directory = Directory::new();
    let error = SqliteStore::open_with(&options(directory.path().join("missing/quota.db"))).unwrap_err();
    assert!(matches!(&error, OpenError::Io { why, .. } if why.contains("create it")), "{error}");
    assert!(!directory.path().join("missing").exists());
    let error = SqliteStore::open_with(&options(directory.path())).unwrap_err();
    assert!(matches!(&error, OpenError::Io { why, .. } if why.contains("it is a directory")), "{error}");
    // Not even root can create files there.
    let error = SqliteStore::open_with(&options("/sys/quota.db")).unwrap_err();
    assert!(matches!(&error, OpenError::ReadOnly { .. }), "{error}");
}

/// A child without root's rights, so that file modes bind it.
fn without_root(program: &Path) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    if std::fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap() == 0 {
        command.uid(65_534).gid(65_534);
    }
    command
}

#[test]
fn a_read_only_file_or_directory_is_named_and_nothing_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let mode =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let directory = Directory::new();
    mode(directory.path(), 0o755);
    let program = directory.path().join("program");
    // A child copies the program: a file that this process has open for writing could be inherited by a child of another
    // test, and then could not be executed.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    mode(&program, 0o755);
    let path = directory.file();
    let rule = rule("sliding-log", &["5/400d"], Algorithm::SlidingLog);
    check(&open(&path), Call::now(), &rule, 1);
    for suffix in ["", "-wal", "-shm"] {
        mode(Path::new(&format!("{}{suffix}", path.display())), 0o444);
    }
    mode(directory.path(), 0o555);
    let orders = |path| ChildOrders {
        path,
        durability: Durability::Full,
        rate: "5/400d",
        algorithm: 0,
        cost: 1,
        times: 1,
    };
    let before = contents(directory.path());
    let missing = directory.path().join("other.db");
    for (path, word) in [(&path, "quota.db cannot be written"), (&missing, "other.db cannot be written")] {
        let reports = orders(path).start_by(without_root(&program)).rest();
        assert!(matches!(&*reports, [ChildReport::Failed(why)] if why.contains(word)), "{reports:?}");
    }
    assert!(contents(directory.path()) == before);
    mode(directory.path(), 0o755);
}

#[test]
fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    let store = open(directory.file());
    check(&store, Call::now(), &rule("api", &["5/400d"], Algorithm::SlidingLog), 1);
    let files: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3);
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn an_empty_file_and_special_names_work() {
    let directory = Directory::new();
    for name in
        ["empty", ":memory:", "file:a?mode=memory", "a%20b", "quota?#.db", "ein Kontingent für alle.db"]
    {
        let path = directory.path().join(name);
        std::fs::write(&path, "").unwrap();
        let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
        check(&open(&path), Call::now(), &rule, 2);
        assert_eq!(used(&open(&path), Call::now(), &rule), 2, "{name}");
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "{name}");
    }
}

#[test]
fn the_secret_is_drawn_once_per_file() {
    let (one, other) = (Directory::new(), Directory::new());
    let secret_of = |directory: &Directory| block_on(open(directory.file()).secret()).unwrap().unwrap();
    let secret = secret_of(&one);
    assert_eq!(secret_of(&one), secret);
    assert_ne!(secret_of(&other), secret);
    assert_ne!(secret, [0; 32]);
}

/// The schema of version 1.
const VERSION_1: &str = "
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL,
        secret BLOB NOT NULL,
        ord INTEGER NOT NULL,
        noted_us INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE state (
        rule TEXT NOT NULL,
        key TEXT NOT NULL,
        bytes BLOB NOT NULL,
        PRIMARY KEY (rule, key)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x73677431;
    PRAGMA user_version = 1;";

#[test]
fn a_file_of_version_1_is_migrated_to_version_4() {
    for journal_mode in ["DELETE", "WAL"] {
        let directory = Directory::new();
        let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let older = Connection::open(directory.file()).unwrap();
        older.execute_batch(VERSION_1).unwrap();
        older.query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |_| Ok(())).unwrap();
        older
            .execute("INSERT INTO meta VALUES (1, 7, ?1, 40, ?2)", ([9; 32], BOUNDARY_US.cast_signed()))
            .unwrap();
        for (number, name) in ["alice", "bob"].into_iter().enumerate() {
            let charge = Charge::new(&rule, key(name), 3);
            let (record, ..) = Record::charged(None, 39 + number as u64, BOUNDARY_US, &charge);
            older.execute("INSERT INTO state VALUES ('api', ?1, ?2)", (name, record.to_bytes())).unwrap();
        }
        older.execute("INSERT INTO state VALUES ('api', 'carol', x'010203')", []).unwrap();
        drop(older);

        let store = open(directory.file());
        assert_eq!(block_on(store.secret()).unwrap(), Some([9; 32]), "{journal_mode}");
        let at = |seconds| Call::at_us(BOUNDARY_US + seconds * SECOND_US);
        let denied = check(&store, at(1), &rule, 3);
        assert_eq!((denied.allowed(), denied.used()), (false, Some(3)), "{journal_mode}");
        let receipt = check(&store, at(2), &rule, 2).receipt().unwrap();
        assert_eq!(
            block_on(store.update(at(3), Update::Refund(&receipt))).unwrap().units,
            2,
            "{journal_mode}"
        );
        assert!(!block_on(store.update(at(3), Update::Refund(&receipt))).unwrap().applied, "{journal_mode}");
        let carol = block_on(store.peek(at(3), &admission(&[(&rule, "carol", 1)])));
        assert!(
            matches!(carol, Err(StoreError::Refused { .. })),
            "{journal_mode}: what was damaged still is"
        );
        // Two hours later bob's state has expired, and another admission sweeps it.
        block_on(store.check(at(9_000), &admission(&[(&rule, "dave", 1)]))).unwrap();
        let file = Connection::open(directory.file()).unwrap();
        let mut keys = file.prepare("SELECT key FROM state ORDER BY key").unwrap();
        let keys: Vec<String> = keys.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(keys, ["carol", "dave"], "{journal_mode}");
        let version: i64 = file.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 4, "{journal_mode}");
    }
}

/// The tables of version 2 that differ from later ones.
const VERSION_2: &str = "
    CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        number INTEGER NOT NULL,
        secret BLOB NOT NULL,
        ord INTEGER NOT NULL,
        noted_us INTEGER NOT NULL,
        presented_us INTEGER NOT NULL DEFAULT 0,
        spent INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE state (
        rule TEXT NOT NULL,
        key TEXT NOT NULL,
        bytes BLOB NOT NULL,
        expires_us INTEGER NOT NULL,
        PRIMARY KEY (rule, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX state_by_expiry ON state (expires_us);
    CREATE TABLE spent (
        first INTEGER NOT NULL,
        second INTEGER NOT NULL,
        expires_us INTEGER NOT NULL,
        PRIMARY KEY (first, second)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX spent_by_expiry ON spent (expires_us);
    PRAGMA application_id = 0x73677431;
    PRAGMA user_version = 2;";

#[test]
fn a_file_of_version_2_keeps_its_states_and_loses_its_spent_receipts() {
    for journal_mode in ["DELETE", "WAL"] {
        let directory = Directory::new();
        let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let older = Connection::open(directory.file()).unwrap();
        older.execute_batch(VERSION_2).unwrap();
        older.query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |_| Ok(())).unwrap();
        let noted_us = BOUNDARY_US.cast_signed();
        older.execute("INSERT INTO meta VALUES (1, -7, ?1, 40, ?2, ?2, 2)", ([9; 32], noted_us)).unwrap();
        let (record, _) = Record::charged(None, 40, BOUNDARY_US, &Charge::new(&rule, key("alice"), 3));
        let row = (record.to_bytes(), record.expires_us().cast_signed());
        older.execute("INSERT INTO state VALUES ('api', 'alice', ?1, ?2)", row).unwrap();
        older.execute_batch("INSERT INTO spent VALUES (1, 2, 9000000000000000), (3, 4, 5)").unwrap();
        drop(older);

        let store = open(directory.file());
        assert_eq!(block_on(store.secret()).unwrap(), Some([9; 32]), "{journal_mode}");
        let at = |seconds| Call::at_us(BOUNDARY_US + seconds * SECOND_US);
        let denied = check(&store, at(1), &rule, 3);
        assert_eq!((denied.allowed(), denied.used()), (false, Some(3)), "{journal_mode}");
        let receipt = check(&store, at(2), &rule, 2).receipt().unwrap();
        assert_eq!(receipt.store(), (-7_i32).cast_unsigned(), "{journal_mode}: the low half of its number");
        let places = receipt.charges()[0].places();
        assert_eq!(places[0].order, 41, "{journal_mode}: the count of charges goes on");
        assert_eq!(
            block_on(store.update(at(3), Update::Refund(&receipt))).unwrap().units,
            2,
            "{journal_mode}"
        );
        assert!(!block_on(store.update(at(3), Update::Refund(&receipt))).unwrap().applied, "{journal_mode}");
        let file = Connection::open(directory.file()).unwrap();
        let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("PRAGMA user_version"), 4, "{journal_mode}");
        assert_eq!(number("SELECT count(*) FROM spent"), 1, "{journal_mode}");
        assert_eq!(number("SELECT spent FROM meta"), 1, "{journal_mode}");
    }
}

/// The table of version 3 that differs from version 2.
const SPENT_3: &str = "
    DROP TABLE spent;
    CREATE TABLE spent (
        id INTEGER PRIMARY KEY,
        expires_us INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX spent_by_expiry ON spent (expires_us);
    PRAGMA user_version = 3;";

/// It may hold states of a clock that was ahead, which version 3 would count until the clock has caught up.
#[test]
fn a_file_of_version_3_keeps_its_states_and_follows_the_clock() {
    for journal_mode in ["DELETE", "WAL"] {
        let directory = Directory::new();
        let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let older = Connection::open(directory.file()).unwrap();
        older.execute_batch(&format!("{VERSION_2}{SPENT_3}")).unwrap();
        older.query_row(&format!("PRAGMA journal_mode = {journal_mode}"), [], |_| Ok(())).unwrap();
        let ahead_us = BOUNDARY_US + 365 * DAY_US;
        let noted_us = ahead_us.cast_signed();
        older.execute("INSERT INTO meta VALUES (1, 7, ?1, 41, ?2, ?2, 1)", ([9; 32], noted_us)).unwrap();
        for (number, (name, at_us)) in [("alice", BOUNDARY_US), ("bob", ahead_us)].into_iter().enumerate() {
            let charge = Charge::new(&rule, key(name), 3);
            let (record, _) = Record::charged(None, 40 + number as u64, at_us, &charge);
            let row = (name, record.to_bytes(), record.expires_us().cast_signed());
            older.execute("INSERT INTO state VALUES ('api', ?1, ?2, ?3)", row).unwrap();
        }
        older.execute_batch("INSERT INTO spent VALUES (77, 9000000000000000)").unwrap();
        drop(older);

        let store = open(directory.file());
        let waits_s = ["alice", "bob"].map(|name| {
            let at = Call::at_us(BOUNDARY_US + 60 * SECOND_US);
            let denied = block_on(store.check(at, &admission(&[(&rule, name, 3)]))).unwrap();
            (denied.used(), denied.retry_after().map(|wait| wait.as_secs()))
        });
        assert_eq!(waits_s, [(Some(3), Some(3_540)), (Some(3), Some(3_600))], "{journal_mode}");
        let file = Connection::open(directory.file()).unwrap();
        let number = |sql: &str| file.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(number("PRAGMA user_version"), 4, "{journal_mode}");
        assert_eq!(number("SELECT id FROM spent"), 77, "{journal_mode}");
    }
}
