//! How a store can fail.

use thiserror::Error;

use super::outcome::Outcome;
use crate::charge::{Admission, ChargeError};
use crate::receipt::ReceiptError;

/// Why a store did not answer. It never means that a request was denied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A new key, or a log that grows, finds the memory budget spent.
    #[error(
        "store: the budget of {budget_bytes} bytes is spent and nothing idle is left to drop; raise the budget, \
         shorten windows, or let the rule evict (`at_budget: evict-oldest`)"
    )]
    Full {
        /// The budget.
        budget_bytes: u64,
    },
}

impl StoreError {
    /// Whether the charge may have been made although no answer came.
    #[must_use]
    pub fn maybe_charged(&self) -> bool {
        match self {
            Self::Full { .. } => false,
        }
    }
}

/// Why a check or a credit has no answer. Nothing was charged, unless the store's error says that it may have
/// been.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The charges cannot be an admission, or the credit is none.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The store failed. From a [limiter](crate::limiter): and a rule says that this refuses the request.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a refund or a settlement has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReturnError {
    /// The receipt is not accepted. Nothing was changed.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What answers in the place of a store that failed.
pub(crate) trait OnFailure {
    type Error: From<StoreError>;

    fn answer<'a>(admission: &Admission<'a>, error: StoreError) -> Result<Outcome<'a>, Self::Error>;
}

/// Nothing does.
pub(super) struct AsItIs;

impl OnFailure for AsItIs {
    type Error = StoreError;

    fn answer<'a>(_admission: &Admission<'a>, error: StoreError) -> Result<Outcome<'a>, StoreError> {
        Err(error)
    }
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
