//! Errors of a line of a trace.

use serde::Serialize;
use slidegate::{ChargeError, CheckError, ReceiptError, ResolveError, StoreError, UpdateError};

use super::receipts::ReceiptStatus;
use crate::rules::InlineError;
use crate::text::escaped;

/// Why a line was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct LineError {
    /// The error code for programs. `malformed`: not an operation; `time`: out of range or order; `charges`: not an
    /// admission; `never`: a cost above a limit; `full`, `unavailable`, `ambiguous`, `refused` and `store`: failures of
    /// the store; the others name the wrong field.
    #[serde(rename = "error")]
    kind: &'static str,
    /// Names the field and the remedy.
    #[serde(rename = "message")]
    pub(super) text: String,
}

impl LineError {
    pub(super) fn new(kind: &'static str, text: &(impl ToString + ?Sized)) -> Self {
        Self { kind, text: escaped(&text.to_string()) }
    }

    /// The error of a charge that cannot be resolved; `which` is the prefix of its fields.
    pub(super) fn of(which: &str, error: &ResolveError) -> Self {
        let kind = match error {
            ResolveError::UnknownRule { .. } => "unknown-rule",
            ResolveError::InlineForbidden { .. } => "inline-rule",
            ResolveError::Key(_) => "key",
            _ => "malformed",
        };
        Self::new(kind, &format!("{which}{error}"))
    }

    /// The receipt status of the line.
    pub(super) fn receipt_status(&self) -> ReceiptStatus {
        match self.kind {
            "never" => ReceiptStatus::Never,
            "blocked" => ReceiptStatus::Blocked,
            _ => ReceiptStatus::Failed,
        }
    }

    /// Whether the line counts as executed: *never* and *blocked* are answers.
    pub(super) fn is_answer(&self) -> bool {
        self.receipt_status() != ReceiptStatus::Failed
    }
}

impl From<CheckError> for LineError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Key(error) => Self::new("key", &error),
            CheckError::Charge(error) => error.into(),
            CheckError::Store(error) => error.into(),
            other => Self::new("malformed", &other),
        }
    }
}

impl From<UpdateError> for LineError {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Key(error) => Self::new("key", &error),
            UpdateError::Receipt(error) => error.into(),
            UpdateError::Store(error) => error.into(),
            other => Self::new("malformed", &other),
        }
    }
}

impl From<ChargeError> for LineError {
    fn from(error: ChargeError) -> Self {
        Self::new("charges", &error)
    }
}

impl From<ReceiptError> for LineError {
    fn from(error: ReceiptError) -> Self {
        let kind = match error {
            ReceiptError::UnequalCosts { .. } | ReceiptError::Excess { .. } => "actual",
            ReceiptError::RecordsFull { .. } | ReceiptError::ShareFull { .. } => "full",
            _ => "receipt",
        };
        Self::new(kind, &error)
    }
}

impl From<StoreError> for LineError {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Full { .. } | StoreError::InlineFull { .. } => "full",
            StoreError::Unavailable { .. } => "unavailable",
            StoreError::Ambiguous { .. } => "ambiguous",
            StoreError::Refused { .. } => "refused",
            _ => "store",
        };
        Self::new(kind, &error)
    }
}

impl From<InlineError> for LineError {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Malformed(text) => Self::new("malformed", &text),
            InlineError::Rule(text) => Self::new("inline-rule", &text),
        }
    }
}

impl From<ResolveError> for LineError {
    fn from(error: ResolveError) -> Self {
        Self::of("", &error)
    }
}

/// Errors of [`crate::text::fields`]: the line is not an operation.
impl From<String> for LineError {
    fn from(text: String) -> Self {
        Self::new("malformed", &text)
    }
}

#[cfg(test)]
mod tests {
    use slidegate::store::RefusalCause;

    use super::*;

    #[test]
    fn failures_of_a_store_have_different_codes() {
        let why = || Box::from("because");
        for (error, kind) in [
            (StoreError::Full { budget_bytes: 1 }, "full"),
            (StoreError::Unavailable { why: why() }, "unavailable"),
            (StoreError::Ambiguous { why: why() }, "ambiguous"),
            (StoreError::InlineFull { share_bytes: 1 }, "full"),
            (StoreError::Refused { cause: RefusalCause::Other, why: why() }, "refused"),
        ] {
            assert_eq!(LineError::from(error).kind, kind);
        }
    }
}
