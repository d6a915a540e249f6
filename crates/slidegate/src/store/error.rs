//! Why a call of a store or a limiter has no answer.

use thiserror::Error;

use crate::charge::ChargeError;
use crate::error::StoreError;
use crate::key::KeyError;
use crate::receipt::ReceiptError;

/// Why a limiter has no answer. Nothing was charged, unless the store's error says that it may have been.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The text is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The charges cannot be an admission.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The store failed, and the outage policy says that this refuses the request.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// As many acquisitions as may wait in one limiter wait already.
    #[error("waiters: {max} wait in this limiter, its maximum; lower max_wait, or shed requests")]
    TooManyWaiters {
        /// The maximum.
        max: usize,
    },
}

/// Why a refund, a settlement, a credit or a reset was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The text is no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A credit of nothing.
    #[error("units: 0 credited to rule `{rule}`; give back at least 1 unit")]
    ZeroCredit {
        /// The rule.
        rule: String,
    },
    /// The receipt is not accepted. Nothing was changed.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a store cannot be made as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// So few bytes that hardly a key would find room.
    #[error("budget: {bytes} bytes are too few to work with; give at least {}", super::BUDGET_BYTES_MIN)]
    TooSmall {
        /// Bytes asked for.
        bytes: u64,
    },
}
