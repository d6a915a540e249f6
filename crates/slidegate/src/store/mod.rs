//! Where states live.
//!
//! A state is (rule name, key). A [`Store`] keeps them; [`MemoryStore`] does so in this process, shared by its
//! threads.

mod any_table;
mod batch;
mod budget;
mod contract;
mod error;
mod key_state;
mod layout;
mod ledger;
mod limit_table;
mod lock;
mod locked;
mod memory;
mod outcome;
mod part;
mod placing;
mod record;
mod returns;
mod rule_states;
mod shard;
mod single;
mod stats;
mod table;
mod verdicts;
mod voids;

pub use budget::{BUDGET_BYTES_DEFAULT, BUDGET_BYTES_MIN};
pub use contract::{Store, When};
pub(crate) use error::OnFailure;
pub use error::{BudgetError, CheckError, ReturnError, StoreError};
pub use key_state::KeyState;
pub use lock::{Lock, Locks, StdLocks};
pub use memory::MemoryStore;
pub use outcome::{LimitUsage, Outcome};
pub use record::Record;
pub use stats::Stats;
