//! A rule's policies for a failed store and for a full one.

use super::Decimal;

/// The answer when the store fails.
///
/// A shared store fails when its network fails; the in-process store when its memory budget is spent and a
/// new key needs a slot.
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
    /// The store fails as full, and [`OnStoreError`] applies. Existing keys keep their counts.
    #[default]
    Refuse,
    /// Approximate LRU eviction: of a few neighbouring keys of the rule, the one charged longest ago is dropped. Its
    /// used units are lost, so a client with many keys can exceed the limit; evictions are counted. If the rule has no
    /// other key nearby, for example because other rules use all memory, the store fails as full.
    EvictOldest,
}
