//! Stores as the program uses them: a limiter with blocking calls, a store that gets hashed keys, and the bytes that a
//! key takes.

mod blocking;
mod bytes_per_key;
mod hashed_keys;

pub(crate) use blocking::{BlockingLimiter, OpenError};
pub(crate) use bytes_per_key::bytes_per_key;
pub(crate) use hashed_keys::HashedKeys;
