//! The in-process store.
//!
//! ```text
//! store          shards, each behind its own lock; the low bits of the key's fingerprint choose one
//! store_trait    `Store` and `LocalStore` for it
//! single         one charge on a rule of one limit: one function from the hash to the answer
//! answer         where its answer goes
//! locked_shards  the shards of an admission over several charges, locked together
//! batch          several admissions in one call
//! slot_hints     prefetches slots before their shard is locked
//! shard          rules by a 128-bit hash of their name; numbers every charge
//! rule_states    the layouts of one rule name
//! table/         slots
//! refunds        refunds and settlements; spent_receipts: ids of spent receipts; void_receipts: receipts of dropped
//!                states
//! budget         the hard bound on memory
//! lock           the kind of lock, so that tests can explore schedules
//! ```

mod answer;
mod batch;
mod budget;
mod lock;
mod locked_shards;
mod refunds;
mod rule_states;
mod shard;
mod single;
mod slot_hints;
mod spent_receipts;
mod store;
mod store_trait;
mod table;
mod void_receipts;

pub use budget::{BUDGET_BYTES_DEFAULT, BUDGET_BYTES_MIN};
pub use lock::{Lock, Locks, StdLocks};
pub use store::MemoryStore;
