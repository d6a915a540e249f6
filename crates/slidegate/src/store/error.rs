//! Errors of store and limiter calls.

use thiserror::Error;

use crate::charge::ChargeError;
use crate::error::StoreError;
use crate::key::KeyError;
use crate::receipt::ReceiptError;

/// Why a check failed. Nothing was charged, unless [`StoreError::maybe_charged`] says so.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The text is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The charges cannot be an admission.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The store failed, and the outage policy denies.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The limiter has its maximum of waiting acquisitions.
    #[error("waiters: {max} wait in this limiter, its maximum; lower max_wait, or shed requests")]
    TooManyWaiters {
        /// The maximum.
        max: usize,
    },
}

/// Why a refund, settlement, credit or reset failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The text is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A credit of 0 units.
    #[error("units: 0 credited to rule `{rule}`; give back at least 1 unit")]
    ZeroCredit {
        /// The rule.
        rule: String,
    },
    /// The receipt was rejected. Nothing was changed.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a memory budget is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// Too few bytes for more than a few keys.
    #[error("budget: {bytes} bytes are too few to work with; give at least {}", super::BUDGET_BYTES_MIN)]
    TooSmall {
        /// Bytes asked for.
        bytes: u64,
    },
}
