//! A cache of inline rules, so that the name and its hash are computed once per set.
//!
//! An open-addressing table of fixed size with [`PROBES`] probes. A slot is written once, so reading it takes no lock.
//! If all slots of a rule are taken, the request builds the rule itself: the table never grows. The hash is keyed, so
//! callers cannot choose their slots.
//!
//! Rejected: eviction. A charge borrows its rule from the table, so entries must stay.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use super::InlineRule;
use crate::rule::Rule;

/// Most inline rules that a set caches: a byte of the hash is the index. Other rules are built by every request.
pub(super) const INLINE_RULES_KEPT_MAX: usize = 1 << u8::BITS;

/// Slots that one rule may take.
const PROBES: usize = 8;

/// The inline rules of a set. It allocates at the first lookup.
#[derive(Default)]
pub(super) struct InlineTable {
    hasher: RandomState,
    slots: OnceLock<Box<[OnceLock<Rule>]>>,
}

impl InlineTable {
    /// The rule; `None` if there is no room for it.
    pub(super) fn get(&self, inline: &InlineRule) -> Option<&Rule> {
        let (rate, algorithm) = (inline.rate(), inline.algorithm());
        let slots = self.slots.get_or_init(|| (0..INLINE_RULES_KEPT_MAX).map(|_| OnceLock::new()).collect());
        let [low, ..] = self.hasher.hash_one((rate, algorithm)).to_le_bytes();
        let first = usize::from(low);
        (first..first + PROBES).find_map(|place| {
            let slot = &slots[place % INLINE_RULES_KEPT_MAX];
            // Two threads may find the same slot free; the later one finds it taken.
            let rule = slot.get_or_init(|| Rule::inline(rate, algorithm));
            let limit = &rule.limits()[0];
            (limit.rate() == rate && limit.algorithm() == algorithm).then_some(rule)
        })
    }

    fn kept(&self) -> usize {
        self.slots.get().map_or(0, |slots| slots.iter().filter(|slot| slot.get().is_some()).count())
    }
}

/// A copy of a set starts with an empty cache.
impl Clone for InlineTable {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for InlineTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineTable").field("kept", &self.kept()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::rule::Algorithm;

    fn inline(limit: u64) -> InlineRule {
        InlineRule::new(format!("{limit}/1m").parse().unwrap(), Algorithm::SlidingLog)
    }

    #[test]
    fn a_rule_is_made_once() {
        let table = InlineTable::default();
        let first = table.get(&inline(5)).unwrap();
        assert!(std::ptr::eq(first, table.get(&inline(5)).unwrap()));
        assert_eq!((first.name(), first.cost_max()), ("sliding-log/60s", 5));
        let gcra = InlineRule::new(inline(5).rate(), Algorithm::Gcra);
        assert_eq!(table.get(&gcra).unwrap().name(), "gcra/60s");
        assert_eq!((table.kept(), table.clone().kept()), (2, 0));
    }

    /// The table keeps its size, and never returns a different rule.
    #[test]
    fn hostile_requests_do_not_make_it_grow() {
        let table = InlineTable::default();
        let mut refused = 0;
        for limit in 1..=100_000 {
            match table.get(&inline(limit)) {
                Some(rule) => assert_eq!(rule.cost_max(), limit),
                None => refused += 1,
            }
        }
        assert_eq!(table.kept(), INLINE_RULES_KEPT_MAX);
        assert_eq!(refused, 100_000 - INLINE_RULES_KEPT_MAX);
        assert_eq!(table.slots.get().unwrap().len(), INLINE_RULES_KEPT_MAX);
    }

    #[test]
    fn threads_that_look_up_a_rule_at_once_share_it() {
        let table = InlineTable::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for limit in 1..=64 {
                        assert!(table.get(&inline(limit)).is_none_or(|rule| rule.cost_max() == limit));
                    }
                });
            }
        });
        assert!(table.kept() <= 64);
    }
}
