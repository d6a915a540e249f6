//! Stores for the suite to judge: some that break a promise, and one that has nothing in common with ours.
#![allow(unreachable_pub, clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

mod broken;
mod modelled;

pub use broken::{Broken, Fault};
pub use modelled::Modelled;
