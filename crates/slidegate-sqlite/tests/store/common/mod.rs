//! Helpers of the test files.

pub mod child;
#[allow(dead_code, reason = "other stores need all of it")]
#[path = "../../../../slidegate/tests/library/common/shorthand.rs"]
mod shorthand;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use slidegate::store::{Call, Store, StoreError};
use slidegate::testing::block_on;
use slidegate::{Decision, Rule};
use slidegate_sqlite::{Durability, SqliteOptions, SqliteStore};

pub use shorthand::*;

/// A temporary directory. Dropping it deletes it.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("slidegate-sqlite-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file under test.
    pub fn file(&self) -> PathBuf {
        self.0.join("quota.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It may have been deleted already.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All files but the shared memory, which readers write to.
pub fn everything(directory: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        (path.file_name().unwrap().to_string_lossy().into_owned(), (std::fs::read(&path).unwrap(), written))
    });
    files.filter(|(name, _)| !name.ends_with("-shm")).collect()
}

/// Options with a deadline that a busy machine meets, and without syncs.
pub fn options(path: impl Into<PathBuf>) -> SqliteOptions {
    SqliteOptions::new(path).durability(Durability::Normal).deadline(Duration::from_secs(120)).unwrap()
}

pub fn open(path: impl Into<PathBuf>) -> SqliteStore {
    SqliteStore::open_with(&options(path)).unwrap()
}

/// Asks for `cost` units of one rule for alice.
pub fn ask<'a>(
    store: &impl Store,
    when: Call,
    rule: &'a Rule,
    cost: u64,
) -> Result<Decision<'a>, StoreError> {
    block_on(store.check(when, &admission(&[(rule, "alice", cost)])))
}

/// The same, panicking on an error.
pub fn check<'a>(store: &impl Store, when: Call, rule: &'a Rule, cost: u64) -> Decision<'a> {
    ask(store, when, rule, cost).unwrap_or_else(|error| panic!("{}: {error}", rule.algorithm()))
}

pub fn peek<'a>(store: &impl Store, when: Call, rule: &'a Rule, cost: u64) -> Decision<'a> {
    block_on(store.peek(when, &admission(&[(rule, "alice", cost)]))).unwrap()
}

/// The largest use of any limit by alice.
pub fn used(store: &impl Store, when: Call, rule: &Rule) -> u64 {
    let limits = block_on(store.inspect(when, rule, key("alice"))).unwrap();
    limits.iter().map(|limit| limit.used).max().unwrap()
}
