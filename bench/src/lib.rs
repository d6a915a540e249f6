//! What the benchmarks share: figures, tables, the machine, and the pages that show them.

pub mod block;
pub mod machine;
pub mod markdown;
pub mod measured;
pub mod statistics;
