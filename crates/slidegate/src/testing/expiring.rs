//! What a store forgets by itself, so that a model can follow it.

use crate::key::Key;
use crate::rule::Rule;
use crate::store::{Locks, MemoryStore, Store};
use crate::time::Clock;

/// A store that may drop the states of which nothing counts any more.
///
/// When it does so is its own affair and changes no answer while time moves forward. After the clock was set
/// back it can be noticed; the [differential](super::differential) therefore asks.
///
/// The defaults are those of a store that never forgets at injected time:
///
/// ```
/// # use slidegate::store::*;
/// # use slidegate::{Admission, Applied, Decision, Key, Rule};
/// # struct MyStore(MemoryStore);
/// # impl Store for MyStore {
/// #     async fn check<'a>(&self, w: Call, a: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
/// #         Store::check(&self.0, w, a).await
/// #     }
/// #     async fn peek<'a>(&self, w: Call, a: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
/// #         Store::peek(&self.0, w, a).await
/// #     }
/// #     async fn update(&self, w: Call, u: Update<'_>) -> Result<Applied, UpdateError> {
/// #         Store::update(&self.0, w, u).await
/// #     }
/// #     async fn inspect(&self, w: Call, r: &Rule, k: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
/// #         Store::inspect(&self.0, w, r, k).await
/// #     }
/// #     async fn change(&self, w: Call, r: &Rule) -> Result<(), StoreError> {
/// #         Store::change(&self.0, w, r).await
/// #     }
/// # }
/// impl slidegate::testing::ExpiringStore for MyStore {}
/// ```
pub trait ExpiringStore: Store {
    /// After how many steps of a trace all states are looked at. More than 1 where every look is a round trip: a fault
    /// is then noticed by the next that asks, or some steps later.
    const INSPECT_EVERY: usize = 1;

    /// Whether it has a state of the key. Asked of keys that were charged.
    fn has_state(&self, _rule: &Rule, _key: Key<'_>) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// The latest time that it has noted, to the millisecond, when it charged, or was told to sweep: what
    /// ended by then may be forgotten, and receipts that expired by then stay expired. `None` if it does
    /// not note time.
    fn noted_us(&self) -> impl Future<Output = Option<u64>> + Send {
        async { None }
    }

    /// Forgets now what may be forgotten, and says how many states that were. `None` if it cannot be told to.
    fn sweep(&self, _now_us: u64) -> impl Future<Output = Option<usize>> + Send {
        async { None }
    }

    /// The state of a key as it is kept, in any form that can be compared: a denial leaves it as it was.
    /// `None` if there is none, or if it cannot be seen.
    fn snapshot(&self, _rule: &Rule, _key: Key<'_>) -> impl Future<Output = Option<String>> + Send {
        async { None }
    }
}

impl<C: Clock, L: Locks> ExpiringStore for MemoryStore<C, L> {
    async fn has_state(&self, rule: &Rule, key: Key<'_>) -> bool {
        self.state(rule, key).is_some()
    }

    async fn noted_us(&self) -> Option<u64> {
        Some(self.noted_us())
    }

    async fn sweep(&self, now_us: u64) -> Option<usize> {
        Some(self.sweep(now_us))
    }

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        self.state(rule, key).map(|state| format!("{state:?}"))
    }
}
