//! What a rule says about the cases that its store does not answer, or has no room.

use super::Decimal;

/// The answer when the store fails.
///
/// A shared store fails when its network does; the in-process store when its memory budget is spent and a
/// new key needs a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OnStoreError {
    /// Refuse: the limit holds, requests are lost.
    #[default]
    Deny,
    /// Admit: no request is lost, the limit does not hold.
    Allow,
    /// Limit within this process, at this share of the limit.
    Local(Decimal),
}

/// What happens to a new key when the store's memory budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AtBudget {
    /// The store fails as full, and [`OnStoreError`] answers. Keys that are known keep their counts.
    #[default]
    Refuse,
    /// The key of the rule that was charged longest ago, of a few neighbours, makes room. What it had used is
    /// forgotten, so a client that can make many keys can get more than the limit; each such loss is counted. Where
    /// the rule has no other key nearby, as when other rules took all memory, the store fails as full.
    EvictOldest,
}
