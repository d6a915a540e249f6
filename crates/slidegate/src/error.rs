//! Store failures.

use thiserror::Error;

/// Why a store did not answer. It never means that a request was denied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The memory budget is spent, and a new key or a growing log needs more.
    #[error(
        "store: the budget of {budget_bytes} bytes is spent and nothing idle is left to drop; raise the budget, \
         shorten windows, or let the rule evict (`at_budget: evict-oldest`)"
    )]
    Full {
        /// The budget.
        budget_bytes: u64,
    },
    /// A shared store did not execute the request: no connection, no time left, or a server that is not ready. Where a
    /// retry could help, it was retried until the deadline.
    #[error("store: could not be asked, so nothing was charged: {why}")]
    Unavailable {
        /// The cause and the remedy. It contains no password.
        why: Box<str>,
    },
    /// A shared store may have executed the request, but its answer is missing. It was not retried: a retry might
    /// charge twice.
    #[error("store: did not answer in time or at all, so the charge may have been made: {why}")]
    Ambiguous {
        /// The cause and the remedy. It contains no password.
        why: Box<str>,
    },
    /// The part of the memory budget that inline rules may take is spent. Other rules still find room.
    #[error(
        "store: inline rules have spent the {share_bytes} bytes that they may take of the budget; name a configured \
         rule, shorten windows, or raise the budget"
    )]
    InlineFull {
        /// Half of the budget.
        share_bytes: u64,
    },
    /// A store refused the request: a foreign value, no memory left, no permission.
    #[error("store: refused, so nothing was charged: {why}")]
    Refused {
        /// What it refused the request for.
        cause: RefusalCause,
        /// The store's reason and the remedy. It contains no password.
        why: Box<str>,
    },
}

impl StoreError {
    /// Whether the charge may have been made although the answer is missing.
    #[must_use]
    pub fn maybe_charged(&self) -> bool {
        match self {
            Self::Full { .. } | Self::InlineFull { .. } | Self::Unavailable { .. } | Self::Refused { .. } => {
                false
            }
            Self::Ambiguous { .. } => true,
        }
    }
}

/// What a store refuses a request for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalCause {
    /// A shared store has no memory left for what it would have to write.
    OutOfMemory,
    /// The store takes no writes: a replica, or a file that this user may not write.
    ReadOnly,
    /// The store cannot write to its disk, which is full or has failed.
    Disk,
    /// The key has a value of another program, or of another layout.
    ForeignValue,
    /// A newer version wrote the state of the key.
    NewerVersion,
    /// The state of the key is damaged.
    DamagedState,
    /// The whole store is damaged.
    DamagedStore,
    /// The store does not accept its user, or lets the user do too little.
    Forbidden,
    /// Anything else.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_answer_may_have_charged() {
        let why = || Box::from("because");
        for (error, open) in [
            (StoreError::Full { budget_bytes: 1 }, false),
            (StoreError::Unavailable { why: why() }, false),
            (StoreError::InlineFull { share_bytes: 1 }, false),
            (StoreError::Refused { cause: RefusalCause::Other, why: why() }, false),
            (StoreError::Ambiguous { why: why() }, true),
        ] {
            assert_eq!(error.maybe_charged(), open, "{error}");
        }
    }
}
