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
    fn transact<T>(
        &self,
        lock_mode: LockMode,
        step: impl FnMut(&Connection) -> Result<TransactionEnd<T>, FileError>,
    ) -> Result<T, FileError> {
        let (engine, call) = (&*self.engine, Call::now());
        let lock_wait = &mut engine.lock_wait(call)?;
        CallContext { engine, lock_wait, call }.transact(lock_mode, step)
    }
}

/// Like the store in memory it stores the latest time, and deletes states that have expired by then.
impl<C: Clock + 'static> ExpiringStore for SqliteStore<C> {
    const INSPECT_EVERY: usize = 4;
    const FOLLOWS_CLOCK: bool = true;

    async fn has_state(&self, rule: &Rule, key: Key<'_>) -> bool {
        self.snapshot(rule, key).await.is_some()
    }

    async fn noted_us(&self) -> Option<u64> {
        self.transact(LockMode::Deferred, |connection| {
            Ok(TransactionEnd::Rollback(Meta::load(connection)?.noted_us))
        })
        .ok()
    }

    /// Not on a clock that was set back: states charged on it must stay until it has caught up.
    async fn sweep(&self, now_us: u64) -> Option<usize> {
        let swept = self.transact(LockMode::Immediate, |connection| {
            let mut meta = Meta::load(connection)?;
            if now_us < meta.noted_us {
                return Ok(TransactionEnd::Rollback(None));
            }
            meta.noted_us = now_us;
            meta.save(connection)?;
            let mut swept =
                connection.execute("DELETE FROM state WHERE expires_us <= ?1", [rows::signed(now_us)])?;
            // States that have ended by a step of the clock keep their old expiry until they are written.
            for rule in rows::rules(connection)? {
                for (key, row) in rows::keys_after(connection, &meta, &rule, "", usize::MAX)? {
                    if row.record.expires_us() <= now_us {
                        rows::delete(connection, &rule, &key)?;
                        swept += 1;
                    }
                }
            }
            Ok(TransactionEnd::Commit(Some(swept)))
        });
        swept.ok().flatten()
    }

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let bytes = self.transact(LockMode::Deferred, |connection| {
            Ok(TransactionEnd::Rollback(rows::bytes_of(connection, rule.name(), key.identity())?))
        });
        bytes.ok().flatten().map(|row| format!("{row:?}"))
    }
}
