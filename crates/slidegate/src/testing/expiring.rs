//! How a store drops ended states, so that the model can follow.

use crate::key::Key;
use crate::rule::Rule;
use crate::store::{Locks, MemoryStore, Store};
use crate::time::Clock;

/// A store that may drop ended states, in which no charge counts any more.
///
/// It may drop them at any time, which changes no answer while time moves forward. After the clock was set
/// back it is visible, so the [differential](super::differential) test asks the store.
///
/// The defaults are those of a store that never drops states at injected time:
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
    /// All states are inspected after this many steps of a trace. More than 1 if an inspection is a round trip: a fault
    /// is then found some steps later.
    const INSPECT_EVERY: usize = 1;

    /// Whether it follows a clock that is set back by more than a second: a state that was charged later than the first
    /// call after that counts what it used as one charge at that call. Otherwise time stands still for the state until the
    /// clock has caught up.
    const FOLLOWS_CLOCK: bool = false;

    /// Whether it has a state of the key. Called for keys that were charged.
    fn has_state(&self, _rule: &Rule, _key: Key<'_>) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// The watermark of time, raised in steps of a millisecond by charges, and by sweeps: states that
    /// ended by then may be dropped, and receipts that expired by then stay expired. `None` if it has no watermark.
    fn noted_us(&self) -> impl Future<Output = Option<u64>> + Send {
        async { None }
    }

    /// Drops all ended states now; returns how many. `None` if it cannot be swept on demand.
    fn sweep(&self, _now_us: u64) -> impl Future<Output = Option<usize>> + Send {
        async { None }
    }

    /// A comparable snapshot of a key's state: a denial must not change it. `None` if there is no state, or no way to
    /// read it.
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
