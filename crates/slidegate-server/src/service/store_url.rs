//! Where states live, as users write it.

use std::str::FromStr;

use thiserror::Error;

use super::shown;

/// A store that this version can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum StoreUrl {
    /// In this process.
    #[default]
    Memory,
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        match text {
            "memory" => Ok(Self::Memory),
            _ => Err(StoreUrlError { text: shown(text) }),
        }
    }
}

/// The store is not one that this version can open.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("store: `{text}` is not available; this version supports `memory` only")]
pub(crate) struct StoreUrlError {
    /// What was written.
    text: String,
}
