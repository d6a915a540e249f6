//! Where states live.
//!
//! A state is (rule name, key). [`MapStore`] keeps all of them in one map with one owner and is told
//! the time with every call: what replays and the judge run on.

mod key_state;
mod ledger;
mod map;
mod returns;

pub use key_state::KeyState;
pub use map::{LimitUsage, MapStore, Outcome};
