//! Stores: which one a URL names, how it is opened, and how many bytes a key takes there.

mod opened;
mod size;
mod store_url;

pub(crate) use opened::{AnyStore, OpenError, Opened};
pub(crate) use size::bytes_per_key;
pub(crate) use store_url::{StoreUrl, StoreUrlError};
