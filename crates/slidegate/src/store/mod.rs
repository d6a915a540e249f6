//! Where states live.
//!
//! A state is (rule name, key). [`MemoryStore`] keeps them in this process, shared by its threads, and is
//! told the time with every call.

mod key_state;
mod ledger;
mod lock;
mod locked;
mod memory;
mod returns;
mod shard;

pub use key_state::KeyState;
pub use lock::{Lock, Locks, StdLocks};
pub use memory::{LimitUsage, MemoryStore, Outcome};
