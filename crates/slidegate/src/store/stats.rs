//! Statistics of a store.

/// Statistics of a store since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The memory budget.
    pub budget_bytes: u64,
    /// Bytes in use: tables and heap memory of states, with an estimate of the allocator's overhead.
    pub bytes: u64,
    /// Keys that have a state, each once per rule.
    pub keys: u64,
    /// Keys that were swept because no charge of them counted any more.
    pub swept: u64,
    /// Keys that were evicted to make room for others; their used units are lost.
    pub evicted: u64,
    /// Charges that found no room: [`super::StoreError::Full`] and [`super::StoreError::InlineFull`].
    pub full: u64,
    /// Spent receipts on record, until they expire.
    pub spent_receipts: u64,
}

impl Stats {
    pub(in crate::store) fn new(budget_bytes: u64, bytes: u64) -> Self {
        Self { budget_bytes, bytes, ..Self::default() }
    }
}
