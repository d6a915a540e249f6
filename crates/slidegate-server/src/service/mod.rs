//! What every way in shares: the rules by name, and how parts of them are written.

mod algorithm;
mod nearest;
mod opened;
mod rules;
mod shown;
mod store_url;

pub(crate) use algorithm::AlgorithmText;
pub(crate) use nearest::{did_you_mean, nearest};
pub(crate) use opened::{AnyStore, Opened};
pub(crate) use rules::{Rules, UnknownRule};
pub(crate) use shown::{escaped, shown};
pub(crate) use store_url::StoreUrl;
