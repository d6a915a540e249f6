//! How a store can fail.

use thiserror::Error;

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
    /// A shared store was not asked: there was no connection, or no time to send the request. What precedes the
    /// execution was tried again for as long as the deadline allowed.
    #[error("store: could not be asked, so nothing was charged: {why}")]
    Unavailable {
        /// What stood in the way, and what to do about it. It holds no password.
        why: Box<str>,
    },
    /// A shared store may have been asked, and its answer did not come. Asking again might charge twice, so
    /// nobody did.
    #[error("store: did not answer in time or at all, so the charge may have been made: {why}")]
    Ambiguous {
        /// What happened, and what to do about it. It holds no password.
        why: Box<str>,
    },
    /// A shared store answered that it will not do it: a value that is not ours, no memory left, no permission.
    #[error("store: refused, so nothing was charged: {why}")]
    Refused {
        /// What it said, and what to do about it. It holds no password.
        why: Box<str>,
    },
}

impl StoreError {
    /// Whether the charge may have been made although no answer came.
    #[must_use]
    pub fn maybe_charged(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Unavailable { .. } | Self::Refused { .. } => false,
            Self::Ambiguous { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_did_not_come_leaves_the_charge_open() {
        let why = || Box::from("because");
        for (error, open) in [
            (StoreError::Full { budget_bytes: 1 }, false),
            (StoreError::Unavailable { why: why() }, false),
            (StoreError::Refused { why: why() }, false),
            (StoreError::Ambiguous { why: why() }, true),
        ] {
            assert_eq!(error.maybe_charged(), open, "{error}");
        }
    }
}
