//! What can be wrong with a line of a trace.

use serde::Serialize;
use slidegate::{ChargeError, CheckError, ReceiptError, ResolveError, StoreError, UpdateError};

use super::receipts::Fate;
use crate::rules::InlineError;
use crate::text::escaped;

/// Why a line was not executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    /// The word by which programs tell failures apart. `malformed` is no operation, `time` is out of range or order, `charges`
    /// are no admission, `never` is a cost above a limit; `full`, `unavailable`, `ambiguous`, `refused` and `store` come
    /// from the store; the others name the field that is wrong.
    #[serde(rename = "error")]
    kind: &'static str,
    /// Names the field and the remedy.
    #[serde(rename = "message")]
    pub(super) text: String,
}

impl Failure {
    pub(super) fn new(kind: &'static str, text: &(impl ToString + ?Sized)) -> Self {
        Self { kind, text: escaped(&text.to_string()) }
    }

    /// What the rules say against a request; `which` says of which charge.
    pub(super) fn of(which: &str, error: &ResolveError) -> Self {
        let kind = match error {
            ResolveError::UnknownRule { .. } => "unknown-rule",
            ResolveError::InlineForbidden { .. } => "inline-rule",
            ResolveError::Key(_) => "key",
            _ => "malformed",
        };
        Self::new(kind, &format!("{which}{error}"))
    }

    /// What it means for the receipt of its line. *Never* and *blocked* are answers all the same.
    pub(super) fn fate(&self) -> Fate {
        match self.kind {
            "never" => Fate::Never,
            "blocked" => Fate::Blocked,
            _ => Fate::Failed,
        }
    }

    /// Whether it is an answer all the same.
    pub(super) fn is_answer(&self) -> bool {
        self.fate() != Fate::Failed
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Key(error) => Self::new("key", &error),
            CheckError::Charge(error) => error.into(),
            CheckError::Store(error) => error.into(),
            other => Self::new("malformed", &other),
        }
    }
}

impl From<UpdateError> for Failure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Key(error) => Self::new("key", &error),
            UpdateError::Receipt(error) => error.into(),
            UpdateError::Store(error) => error.into(),
            other => Self::new("malformed", &other),
        }
    }
}

impl From<ChargeError> for Failure {
    fn from(error: ChargeError) -> Self {
        Self::new("charges", &error)
    }
}

impl From<ReceiptError> for Failure {
    fn from(error: ReceiptError) -> Self {
        let kind = match error {
            ReceiptError::UnequalCosts { .. } | ReceiptError::Excess { .. } => "actual",
            ReceiptError::RecordsFull { .. } => "full",
            _ => "receipt",
        };
        Self::new(kind, &error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            StoreError::Full { .. } => "full",
            StoreError::Unavailable { .. } => "unavailable",
            StoreError::Ambiguous { .. } => "ambiguous",
            StoreError::Refused { .. } => "refused",
            _ => "store",
        };
        Self::new(kind, &error)
    }
}

impl From<InlineError> for Failure {
    fn from(error: InlineError) -> Self {
        match error {
            InlineError::Malformed(text) => Self::new("malformed", &text),
            InlineError::Rule(text) => Self::new("inline-rule", &text),
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
        Self::new("malformed", &text)
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
            assert_eq!(Failure::from(error).kind, kind);
        }
    }
}
