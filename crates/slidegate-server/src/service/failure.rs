//! Why a request has no answer, whichever wire it came in on.

use slidegate::ruleset::{AdmissionError, AdmissionErrorKind};
use slidegate::{ChargeError, CheckError, ReceiptError, ResolveError, StoreError, UpdateError};

use crate::receipts::BadReceipt;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// Which of several charges it is about.
    pub(crate) at: Option<usize>,
    /// `field: what is wrong; remedy`.
    pub(crate) text: String,
}

/// What kind of failure it is; wires translate it into their own codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The caller's mistake: a bad key, a cost of nothing, too many charges.
    Malformed,
    /// A receipt that is not accepted.
    Receipt,
    UnknownRule,
    InlineForbidden,
    /// An override says that this key never passes.
    Blocked,
    /// A cost above the limit.
    Never,
    /// A settlement that its receipt cannot bear.
    Actual,
    /// The store did not answer, and the outage policy refuses.
    Store {
        maybe_charged: bool,
    },
}

impl Failure {
    pub(super) fn new(kind: Kind, text: String) -> Self {
        Self { kind, at: None, text }
    }

    /// Why `count` charges cannot be asked for; which of them is said where there are several.
    pub(super) fn of(error: AdmissionError, count: usize) -> Self {
        let AdmissionError { at, reason } = error;
        let failure = match reason {
            AdmissionErrorKind::Resolve(error) => error.into(),
            AdmissionErrorKind::Charge(error) => error.into(),
            AdmissionErrorKind::Blocked { .. } => Self::new(Kind::Blocked, reason.to_string()),
            _ => Self::new(Kind::Malformed, reason.to_string()),
        };
        Self { at: at.filter(|_| count > 1), ..failure }
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        let kind = match error {
            ResolveError::UnknownRule { .. } => Kind::UnknownRule,
            ResolveError::InlineForbidden { .. } => Kind::InlineForbidden,
            _ => Kind::Malformed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<BadReceipt> for Failure {
    fn from(error: BadReceipt) -> Self {
        Self::new(Kind::Receipt, error.to_string())
    }
}

impl From<ChargeError> for Failure {
    fn from(error: ChargeError) -> Self {
        let kind = if matches!(error, ChargeError::Never { .. }) { Kind::Never } else { Kind::Malformed };
        // On wires the list of charges is called so.
        let text = error.to_string();
        let text = text.strip_prefix("charges: ").map_or(text.clone(), |rest| format!("checks: {rest}"));
        Self::new(kind, text)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Kind::Store { maybe_charged: error.maybe_charged() }, error.to_string())
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Charge(error) => error.into(),
            CheckError::Store(error) => error.into(),
            other => Self::new(Kind::Malformed, other.to_string()),
        }
    }
}

impl From<UpdateError> for Failure {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Store(error) => error.into(),
            UpdateError::Receipt(error) => {
                let kind = match error {
                    ReceiptError::UnequalCosts { .. } | ReceiptError::Excess { .. } => Kind::Actual,
                    ReceiptError::RecordsFull { .. } => Kind::Store { maybe_charged: false },
                    _ => Kind::Receipt,
                };
                Self::new(kind, error.to_string())
            }
            other => Self::new(Kind::Malformed, other.to_string()),
        }
    }
}
