//! Stores for the suite to judge: some that break a promise, and one that has nothing in common with ours.

mod broken;
mod modelled;

pub use broken::{Broken, Fault};
pub use modelled::Modelled;
