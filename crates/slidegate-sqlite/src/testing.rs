//! The hooks that the test suites of `slidegate::testing` need.

use rusqlite::Connection;
use slidegate::store::Call;
use slidegate::testing::ExpiringStore;
use slidegate::time::Clock;
use slidegate::{Key, Rule};

use crate::engine::CallContext;
use crate::file_error::FileError;
use crate::rows::{self, Meta};
use crate::store::SqliteStore;
use crate::transaction::{LockMode, TransactionEnd};

impl<C: Clock> SqliteStore<C> {
    fn step<T>(
        &self,
        lock_mode: LockMode,
        mut step: impl FnMut(&Connection) -> Result<TransactionEnd<T>, FileError>,
    ) -> Result<T, FileError> {
        let (engine, call) = (&*self.engine, Call::now());
        let lock_wait = &mut engine.lock_wait(call)?;
        CallContext { engine, lock_wait, call }.step(lock_mode, |connection, _| step(connection))
    }
}

/// Like the store in memory it stores the latest time, and deletes states that have expired by then.
impl<C: Clock + 'static> ExpiringStore for SqliteStore<C> {
    const INSPECT_EVERY: usize = 4;

    async fn has_state(&self, rule: &Rule, key: Key<'_>) -> bool {
        self.snapshot(rule, key).await.is_some()
    }

    async fn noted_us(&self) -> Option<u64> {
        self.step(LockMode::Deferred, |connection| {
            Ok(TransactionEnd::Rollback(Meta::load(connection)?.noted_us))
        })
        .ok()
    }

    /// Not on a clock that was set back: states charged on it must stay until it has caught up.
    async fn sweep(&self, now_us: u64) -> Option<usize> {
        let swept = self.step(LockMode::Immediate, |connection| {
            let mut meta = Meta::load(connection)?;
            if now_us < meta.noted_us {
                return Ok(TransactionEnd::Rollback(None));
            }
            meta.noted_us = now_us;
            meta.save(connection)?;
            Ok(TransactionEnd::Commit(Some(
                connection.execute("DELETE FROM state WHERE expires_us <= ?1", [rows::signed(now_us)])?,
            )))
        });
        swept.ok().flatten()
    }

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let bytes = self.step(LockMode::Deferred, |connection| {
            Ok(TransactionEnd::Rollback(rows::bytes_of(connection, rule.name(), key.as_str())?))
        });
        bytes.ok().flatten().map(|bytes| format!("{bytes:?}"))
    }
}
