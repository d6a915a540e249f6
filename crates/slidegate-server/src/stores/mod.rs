//! Stores as the commands use them: a limiter with blocking calls, and the bytes that a key takes.

mod blocking;
mod bytes_per_key;

pub(crate) use blocking::{BlockingLimiter, OpenError};
pub(crate) use bytes_per_key::bytes_per_key;
