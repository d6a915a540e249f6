//! Where states live.
//!
//! A state is (rule name, key). [`MemoryStore`] keeps them in this process, shared by its threads, and is
//! told the time with every call.

mod any_table;
mod budget;
mod error;
mod key_state;
mod layout;
mod ledger;
mod limit_table;
mod lock;
mod locked;
mod memory;
mod outcome;
mod placing;
mod returns;
mod rule_states;
mod shard;
mod single;
mod stats;
mod table;
mod verdicts;
mod voids;

pub use budget::{BUDGET_BYTES_DEFAULT, BUDGET_BYTES_MIN};
pub(crate) use error::OnFailure;
pub use error::{BudgetError, StoreError};
pub use key_state::KeyState;
pub use lock::{Lock, Locks, StdLocks};
pub use memory::MemoryStore;
pub use outcome::{LimitUsage, Outcome};
pub use stats::Stats;
