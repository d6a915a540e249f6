//! What the store forgets by itself, for the judge to follow.

use slidegate::testing::Forgetting;
use slidegate::time::Clock;
use slidegate::{Key, Rule};

use crate::rows::{self, Meta};
use crate::store::SqliteStore;
use crate::transaction::{Begin, End};

/// It notes time as the store in memory does, and forgets what has ended by then.
impl<C: Clock> Forgetting for SqliteStore<C> {
    const LOOKS_EVERY: usize = 4;

    async fn remembers(&self, rule: &Rule, key: Key<'_>) -> bool {
        self.seen(rule, key).await.is_some()
    }

    async fn noted_us(&self) -> Option<u64> {
        self.step(Begin::AtFirstWrite, |held| Ok(End::Nothing(Meta::load(held.connection())?.noted_us))).ok()
    }

    /// Not on a clock that was set back: what is charged on it must not be forgotten before it has caught up.
    async fn sweep(&self, now_us: u64) -> Option<usize> {
        let swept = self.step(Begin::AtOnce, |held| {
            let connection = held.connection();
            let mut meta = Meta::load(connection)?;
            if now_us < meta.noted_us {
                return Ok(End::Nothing(None));
            }
            meta.noted_us = now_us;
            meta.save(connection)?;
            Ok(End::Keep(Some(rows::sweep_all(connection, now_us)?)))
        });
        swept.ok().flatten()
    }

    async fn seen(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let bytes = self.step(Begin::AtFirstWrite, |held| {
            Ok(End::Nothing(rows::bytes_of(held.connection(), rule.name(), key.as_str())?))
        });
        bytes.ok().flatten().map(|bytes| format!("{bytes:?}"))
    }
}
