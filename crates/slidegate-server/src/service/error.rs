//! Why a request has no answer, on any wire.

use slidegate::ruleset::{AdmissionError, AdmissionErrorKind};
use slidegate::{ChargeError, CheckError, ReceiptError, ResolveError, StoreError, UpdateError};

use crate::metrics::StoreCause;
use crate::receipts::BadReceipt;

const INLINE_FORBIDDEN: &str = "rule: inline rules are not allowed; add `inline_rules: true` to the server's \
                                configuration, or name one of its rules";

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) kind: ServiceErrorKind,
    /// The index of the charge that caused it, where there are several.
    pub(crate) at: Option<usize>,
    /// `field: what is wrong; remedy`.
    pub(crate) text: String,
}

/// The kind of a [`ServiceError`]; wires translate it into their own codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceErrorKind {
    /// A mistake of the caller: a bad key, a cost of 0, too many charges.
    Malformed,
    /// A receipt that is not accepted.
    Receipt,
    UnknownRule,
    InlineForbidden,
    /// An inline rule beyond a bound of this server.
    InlineBound,
    /// An override blocks the key.
    Blocked,
    /// A cost above the limit.
    Never,
    /// A settlement that its receipt does not allow.
    Actual,
    /// The store failed, and the outage policy denies.
    Store {
        cause: StoreCause,
        maybe_charged: bool,
    },
}

impl ServiceError {
    pub(super) fn new(kind: ServiceErrorKind, text: String) -> Self {
        Self { kind, at: None, text }
    }

    /// The error of an admission of `count` charges; it names the charge where there are several.
    pub(super) fn of(error: AdmissionError, count: usize) -> Self {
        let AdmissionError { at, reason } = error;
        let failure = match reason {
            AdmissionErrorKind::Resolve(error) => error.into(),
            AdmissionErrorKind::Charge(error) => error.into(),
            AdmissionErrorKind::Blocked { .. } => Self::new(ServiceErrorKind::Blocked, reason.to_string()),
            _ => Self::new(ServiceErrorKind::Malformed, reason.to_string()),
        };
        Self { at: at.filter(|_| count > 1), ..failure }
    }
}

impl From<ResolveError> for ServiceError {
    fn from(error: ResolveError) -> Self {
        let kind = match error {
            ResolveError::UnknownRule { .. } => ServiceErrorKind::UnknownRule,
            // The library's text names the configuration file, whose path is not the caller's business.
            ResolveError::InlineForbidden { .. } => {
                return Self::new(ServiceErrorKind::InlineForbidden, INLINE_FORBIDDEN.to_owned());
            }
            _ => ServiceErrorKind::Malformed,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<BadReceipt> for ServiceError {
    fn from(error: BadReceipt) -> Self {
        Self::new(ServiceErrorKind::Receipt, error.to_string())
    }
}

impl From<ChargeError> for ServiceError {
    fn from(error: ChargeError) -> Self {
        let kind = if matches!(error, ChargeError::Never { .. } | ChargeError::NeverInShard { .. }) {
            ServiceErrorKind::Never
        } else {
            ServiceErrorKind::Malformed
        };
        // The wires call the list of charges `checks`.
        let text = error.to_string();
        let text = text.strip_prefix("charges: ").map_or(text.clone(), |rest| format!("checks: {rest}"));
        Self::new(kind, text)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        let (cause, maybe_charged) = (StoreCause::of(&error), error.maybe_charged());
        Self::new(ServiceErrorKind::Store { cause, maybe_charged }, error.to_string())
    }
}

impl From<CheckError> for ServiceError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Charge(error) => error.into(),
            CheckError::Store(error) => error.into(),
            other => Self::new(ServiceErrorKind::Malformed, other.to_string()),
        }
    }
}

impl From<UpdateError> for ServiceError {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Store(error) => error.into(),
            UpdateError::Receipt(error) => {
                let kind = match error {
                    ReceiptError::UnequalCosts { .. } | ReceiptError::Excess { .. } => {
                        ServiceErrorKind::Actual
                    }
                    ReceiptError::RecordsFull { .. } | ReceiptError::ShareFull { .. } => {
                        ServiceErrorKind::Store { cause: StoreCause::ReceiptsFull, maybe_charged: false }
                    }
                    _ => ServiceErrorKind::Receipt,
                };
                Self::new(kind, error.to_string())
            }
            other => Self::new(ServiceErrorKind::Malformed, other.to_string()),
        }
    }
}
