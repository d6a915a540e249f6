//! What the store forgets by itself, so that the suites of `slidegate::testing` can follow it.

use rusqlite::Connection;
use slidegate::store::Call;
use slidegate::testing::ExpiringStore;
use slidegate::time::Clock;
use slidegate::{Key, Rule};

use crate::engine::Turn;
use crate::failure::Failure;
use crate::rows::{self, Meta};
use crate::store::SqliteStore;
use crate::transaction::{Begin, End};

impl<C: Clock> SqliteStore<C> {
    fn step<T>(
        &self,
        begin: Begin,
        mut step: impl FnMut(&Connection) -> Result<End<T>, Failure>,
    ) -> Result<T, Failure> {
        let (engine, call) = (&*self.engine, Call::now());
        let patience = &mut engine.patience(call)?;
        Turn { engine, patience, call }.step(begin, |connection, _| step(connection))
    }
}

/// It notes time as the store in memory does, and forgets what has ended by then.
impl<C: Clock + 'static> ExpiringStore for SqliteStore<C> {
    const INSPECT_EVERY: usize = 4;

    async fn has_state(&self, rule: &Rule, key: Key<'_>) -> bool {
        self.snapshot(rule, key).await.is_some()
    }

    async fn noted_us(&self) -> Option<u64> {
        self.step(Begin::AtFirstWrite, |connection| Ok(End::Nothing(Meta::load(connection)?.noted_us))).ok()
    }

    /// Not on a clock that was set back: what is charged on it must not be forgotten before it has caught up.
    async fn sweep(&self, now_us: u64) -> Option<usize> {
        let swept = self.step(Begin::AtOnce, |connection| {
            let mut meta = Meta::load(connection)?;
            if now_us < meta.noted_us {
                return Ok(End::Nothing(None));
            }
            meta.noted_us = now_us;
            meta.save(connection)?;
            Ok(End::Keep(Some(
                connection.execute("DELETE FROM state WHERE expires_us <= ?1", [rows::signed(now_us)])?,
            )))
        });
        swept.ok().flatten()
    }

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let bytes = self.step(Begin::AtFirstWrite, |connection| {
            Ok(End::Nothing(rows::bytes_of(connection, rule.name(), key.as_str())?))
        });
        bytes.ok().flatten().map(|bytes| format!("{bytes:?}"))
    }
}
