//! A rule's policies: for a failed store, for a full one, and for what another limiter left in it.

use super::Decimal;

/// The answer when the store fails.
///
/// A shared store fails when its network fails; the in-process store when its memory budget is spent and a new key
/// needs a slot or a growing log more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OnStoreError {
    /// Refuse: the limit holds, requests are lost.
    #[default]
    Deny,
    /// Admit: no request is lost, the limit does not hold.
    Allow,
    /// Limit within this process, at this share of the limit, rounded down and at least 1. What the store has admitted
    /// for this process counts too, if the limiter has a [circuit breaker](crate::guard::GuardOptions::breaker). A cost
    /// above the share is denied without a wait. With a share of 1/n in each of n processes they admit the limit together.
    Local(Decimal),
}

/// What happens when the store's memory budget is spent and a new key or a growing log needs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum AtBudget {
    /// The store fails as full, and [`OnStoreError`] applies. Existing keys keep their counts; those that need no more
    /// memory are still decided.
    #[default]
    Refuse,
    /// Approximate LRU eviction: of a few neighbouring keys of the rule, the one charged longest ago is dropped. Its
    /// used units are lost, so a client with many keys can exceed the limit; evictions are counted. If the rule has no
    /// other key nearby, for example because other rules use all memory, the store fails as full.
    EvictOldest,
}

/// The unit of the times in the sorted sets that another limiter left under the names of a rule's keys.
///
/// A shared store that keeps `sliding-log` as sorted sets takes over such a set: once, when it first meets the key, with all
/// its members. Without this setting it takes over sets whose times are microseconds, and any other is an error. Other
/// stores, and other layouts, have no use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TakeOver {
    /// Milliseconds since 1970.
    #[cfg_attr(feature = "serde", serde(rename = "ms"))]
    Milliseconds,
    /// Seconds since 1970.
    #[cfg_attr(feature = "serde", serde(rename = "s"))]
    Seconds,
}

impl TakeOver {
    /// The names of both, as [`TakeOver::name`] writes them.
    pub const NAMES: [&str; 2] = ["ms", "s"];

    /// The name: `ms` or `s`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// The unit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Milliseconds, Self::Seconds].into_iter().find(|unit| unit.name() == name)
    }
}
