//! Tests of the HTTP server in this process, over real connections.

mod access;
mod answers;
mod atomic_charges;
mod bodies;
mod bounds;
mod buffer_bound;
mod client;
mod clock;
mod fuzzed_bodies;
mod graceful_shutdown;
mod headers;
mod host_names;
mod overrides;
mod problems;
mod receipts;
mod shards;
mod shared_store;
mod tags;
mod test_server;
mod tls;
