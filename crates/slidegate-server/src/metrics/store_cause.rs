//! Why the store fails: the label of metrics, the field of log lines, and what an operator can do.

use slidegate::store::{RefusalCause, StoreError};

/// Why the store failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCause {
    Full,
    InlineFull,
    ReceiptsFull,
    Unavailable,
    Ambiguous,
    OutOfMemory,
    ReadOnly,
    Disk,
    Forbidden,
    DamagedStore,
    ForeignValue,
    NewerVersion,
    DamagedState,
    Refused,
    Other,
}

impl StoreCause {
    /// All causes, in the order of their numbers.
    pub(crate) const ALL: [Self; 15] = [
        Self::Full,
        Self::InlineFull,
        Self::ReceiptsFull,
        Self::Unavailable,
        Self::Ambiguous,
        Self::OutOfMemory,
        Self::ReadOnly,
        Self::Disk,
        Self::Forbidden,
        Self::DamagedStore,
        Self::ForeignValue,
        Self::NewerVersion,
        Self::DamagedState,
        Self::Refused,
        Self::Other,
    ];

    /// The cause of an error.
    pub(crate) fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Full { .. } => Self::Full,
            StoreError::InlineFull { .. } => Self::InlineFull,
            StoreError::Unavailable { .. } => Self::Unavailable,
            StoreError::Ambiguous { .. } => Self::Ambiguous,
            StoreError::Refused { cause, .. } => match cause {
                RefusalCause::OutOfMemory => Self::OutOfMemory,
                RefusalCause::ReadOnly => Self::ReadOnly,
                RefusalCause::Disk => Self::Disk,
                RefusalCause::Forbidden => Self::Forbidden,
                RefusalCause::DamagedStore => Self::DamagedStore,
                RefusalCause::ForeignValue => Self::ForeignValue,
                RefusalCause::NewerVersion => Self::NewerVersion,
                RefusalCause::DamagedState => Self::DamagedState,
                _ => Self::Refused,
            },
            _ => Self::Other,
        }
    }

    /// Its name, and what it means with the remedy. No text has a key, an address or a path: `/readyz` needs no token.
    fn about(self) -> (&'static str, &'static str) {
        match self {
            Self::Full => ("full", "new keys find no room in memory; raise memory_budget"),
            Self::InlineFull => (
                "inline-full",
                "inline rules have spent their half of the memory; configure the rules, or raise memory_budget",
            ),
            Self::ReceiptsFull => (
                "receipts-full",
                "refunds wait until older receipts expire; refund less, shorten windows, or raise memory_budget",
            ),
            Self::Unavailable => {
                ("unavailable", "the store is not reached, or not in time; check that it runs, and its load")
            }
            Self::Ambiguous => {
                ("ambiguous", "the store does not answer in time; check its load, or raise deadline")
            }
            Self::OutOfMemory => {
                ("out-of-memory", "Redis is out of memory; raise maxmemory, or give it more memory")
            }
            Self::ReadOnly => (
                "read-only",
                "the store takes no writes; give the address of the primary, or let us write the file",
            ),
            Self::Disk => ("disk", "the store cannot write to its disk; make room on it"),
            Self::Forbidden => {
                ("forbidden", "the store refuses our user; correct the password, or its permissions")
            }
            Self::DamagedStore => (
                "damaged-store",
                "the file is damaged, or of another program or version; restore it from a copy",
            ),
            Self::ForeignValue => (
                "foreign-value",
                "keys have values of another program; delete them, or choose another key_prefix",
            ),
            Self::NewerVersion => ("newer-version", "a newer version wrote some states; update this server"),
            Self::DamagedState => ("damaged-state", "the states of some keys are damaged; reset those keys"),
            Self::Refused => ("refused", "the store refuses some requests; their answers say why"),
            Self::Other => ("other", "the store fails; see the answers to requests"),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.about().0
    }

    /// What it means, and the remedy.
    pub(crate) fn remedy(self) -> &'static str {
        self.about().1
    }

    /// Whether it fails the requests of all keys. The server is not ready then; else most requests are answered.
    pub(crate) fn fails_all(self) -> bool {
        match self {
            Self::Unavailable
            | Self::Ambiguous
            | Self::OutOfMemory
            | Self::ReadOnly
            | Self::Disk
            | Self::Forbidden
            | Self::DamagedStore
            | Self::Other => true,
            Self::Full
            | Self::InlineFull
            | Self::ReceiptsFull
            | Self::ForeignValue
            | Self::NewerVersion
            | Self::DamagedState
            | Self::Refused => false,
        }
    }

    /// Whether only an answer to a write shows that it has ended: reads, denials among them, go on meanwhile.
    pub(crate) fn fails_writes_only(self) -> bool {
        self.is_lack_of_room() || matches!(self, Self::OutOfMemory | Self::ReadOnly | Self::Disk)
    }

    /// Whether the memory budget has no room. Known keys still find theirs.
    fn is_lack_of_room(self) -> bool {
        matches!(self, Self::Full | Self::InlineFull | Self::ReceiptsFull)
    }

    /// Whether the text of its error has no key. Keys may be personal data, and are not logged.
    pub(crate) fn error_has_no_key(self) -> bool {
        self.is_lack_of_room() || (self.fails_all() && self != Self::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_numbered_and_have_names_of_their_own() {
        for (number, cause) in StoreCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            assert!(cause.remedy().contains("; "), "{cause:?}");
            let same = StoreCause::ALL.iter().filter(|other| other.name() == cause.name());
            assert_eq!(same.count(), 1, "{cause:?}");
        }
    }
}
