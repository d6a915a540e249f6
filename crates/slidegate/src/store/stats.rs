//! What a store holds.

/// Counts of a store, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes that it may take.
    pub budget_bytes: u64,
    /// Bytes that it takes: tables, and what states have on the heap, with a share for what allocators hold
    /// back.
    pub bytes: u64,
    /// Keys that have a state, each once per rule.
    pub keys: u64,
    /// Keys that were forgotten because nothing of them counted any more.
    pub swept: u64,
    /// Keys that were forgotten to make room for others, with what they had used.
    pub evicted: u64,
    /// Charges that found no room: [`super::StoreError::Full`].
    pub full: u64,
}

impl Stats {
    pub(in crate::store) fn new(budget_bytes: u64, bytes: u64) -> Self {
        Self { budget_bytes, bytes, ..Self::default() }
    }
}
