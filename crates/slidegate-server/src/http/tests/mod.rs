//! The server in this process, on a port of its own, asked over real connections.

mod answers;
mod bodies;
mod bounds;
mod client;
mod drain;
mod harness;
mod headers;
mod mischief;
mod overrides;
mod problems;
mod receipts;
mod shared_store;
mod together;
