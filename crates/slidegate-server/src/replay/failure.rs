//! What can be wrong with a line of a trace.

use slidegate::{ChargeError, CheckError, ReceiptError, ResolveError, StoreError, UpdateError};
use thiserror::Error;

use super::receipts::{Fate, NoReceipt};
use crate::rules::InlineError;

/// Why a line was not executed. The text names the field and the remedy.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// Not an operation: bad JSON, a wrong type, an unknown or a missing field.
    #[error("{0}")]
    Malformed(String),
    /// Its time is out of range or earlier than the line before.
    #[error("{0}")]
    Time(String),
    /// No rule has that name.
    #[error("{0}")]
    UnknownRule(String),
    /// An inline rule that cannot be, or that the configuration does not allow.
    #[error("{0}")]
    InlineRule(String),
    /// A key that cannot be.
    #[error("{0}")]
    Key(String),
    /// A key that an override blocks.
    #[error("{0}")]
    Blocked(String),
    /// A live change to limits that cannot be.
    #[error("{0}")]
    Limit(String),
    /// A credit of nothing.
    #[error("units: 0 would give nothing back; credit at least 1 unit")]
    Units,
    /// A charge of nothing.
    #[error("{0}")]
    Cost(String),
    /// A cost above a limit.
    #[error("{0}")]
    Never(String),
    /// Charges that cannot be an admission for another reason.
    #[error(transparent)]
    Charge(#[from] ChargeError),
    /// The line that was named has no receipt.
    #[error(transparent)]
    NoReceipt(#[from] NoReceipt),
    /// The store does not accept the receipt.
    #[error(transparent)]
    Receipt(#[from] ReceiptError),
    /// The store has no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Key(error) => Self::Key(error.to_string()),
            CheckError::Charge(error) => error.into(),
            CheckError::Store(error) => error.into(),
            other => Self::Malformed(other.to_string()),
        }
    }
}

impl From<UpdateError> for Failure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Key(error) => Self::Key(error.to_string()),
            UpdateError::Receipt(error) => error.into(),
            UpdateError::Store(error) => error.into(),
            other => Self::Malformed(other.to_string()),
        }
    }
}

impl Failure {
    /// The word by which programs tell failures apart.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::Time(_) => "time",
            Self::UnknownRule(_) => "unknown-rule",
            Self::InlineRule(_) => "inline-rule",
            Self::Key(_) => "key",
            Self::Blocked(_) => "blocked",
            Self::Limit(_) => "limit",
            Self::Units => "units",
            Self::Cost(_) => "cost",
            Self::Never(_) => "never",
            Self::Charge(_) => "charges",
            Self::Receipt(ReceiptError::UnequalCosts { .. } | ReceiptError::Excess { .. }) => "actual",
            Self::Receipt(ReceiptError::RecordsFull { .. }) | Self::Store(StoreError::Full { .. }) => "full",
            Self::NoReceipt(_) | Self::Receipt(_) => "receipt",
            Self::Store(StoreError::Unavailable { .. }) => "unavailable",
            Self::Store(StoreError::Ambiguous { .. }) => "ambiguous",
            Self::Store(StoreError::Refused { .. }) => "refused",
            Self::Store(_) => "store",
        }
    }

    /// What the rules say against a request; `which` says of which charge.
    pub(super) fn of(which: &str, error: &ResolveError) -> Self {
        let text = format!("{which}{error}");
        match error {
            ResolveError::UnknownRule { .. } => Self::UnknownRule(text),
            ResolveError::InlineForbidden { .. } => Self::InlineRule(text),
            ResolveError::Key(_) => Self::Key(text),
            _ => Self::Malformed(text),
        }
    }

    /// What it means for the receipt of its line. *Never* and *blocked* are answers all the same.
    pub(super) fn fate(&self) -> Fate {
        match self {
            Self::Never(_) => Fate::Never,
            Self::Blocked(_) => Fate::Blocked,
            _ => Fate::Failed,
        }
    }

    /// Whether it is an answer all the same.
    pub(super) fn is_answer(&self) -> bool {
        self.fate() != Fate::Failed
    }
}

impl From<InlineError> for Failure {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Malformed(text) => Self::Malformed(text),
            InlineError::Rule(text) => Self::InlineRule(text),
        }
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        Self::of("", &error)
    }
}

/// What [`crate::text::fields`] reports is a line that is no operation.
impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Malformed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_a_store_are_told_apart() {
        let why = || Box::from("because");
        for (error, kind) in [
            (StoreError::Full { budget_bytes: 1 }, "full"),
            (StoreError::Unavailable { why: why() }, "unavailable"),
            (StoreError::Ambiguous { why: why() }, "ambiguous"),
            (StoreError::Refused { why: why() }, "refused"),
        ] {
            assert_eq!(Failure::from(error).kind(), kind);
        }
    }
}
