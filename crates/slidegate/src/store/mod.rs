//! Where states live.
//!
//! A state is (rule name, key). A [`Store`] keeps states; [`MemoryStore`] keeps them in this process, shared by its
//! threads. [`BoxStore`] is a store that is chosen at run time.
//!
//! Users call a [`Limiter`](crate::Limiter) over a store, not the store itself.

mod boxed;
mod call;
mod contract;
mod error;
mod failed;
mod key_state;
mod memory;
mod record;
mod stats;
mod usage;
mod verdicts;

pub use crate::error::{RefusalCause, StoreError};
pub use boxed::BoxStore;
pub use call::Call;
pub use contract::{LocalStore, SECRET_BYTES, Store, Update};
pub use error::{BudgetError, CheckError, UpdateError};
pub use failed::FailedStore;
pub use key_state::KeyState;
pub use memory::{BUDGET_BYTES_DEFAULT, BUDGET_BYTES_MIN, Lock, Locks, MemoryStore, StdLocks};
pub use record::Record;
pub use stats::Stats;
pub use usage::LimitUsage;
