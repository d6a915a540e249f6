//! Stores as the program uses them: opened for a command, and how many bytes a key takes there.

mod opened;
mod size;

pub(crate) use opened::{OpenError, Opened};
pub(crate) use size::bytes_per_key;
