//! The rules in force, which a reload replaces.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use slidegate::RuleSet;

/// The rules in force. A request loads them once and keeps that snapshot during a reload.
#[derive(Debug)]
pub(crate) struct LiveRules(ArcSwap<RuleSet>);

impl LiveRules {
    pub(crate) fn new(rules: RuleSet) -> Self {
        Self(ArcSwap::from_pointee(rules))
    }

    /// A snapshot of the rules in force.
    pub(crate) fn load(&self) -> Guard<Arc<RuleSet>> {
        self.0.load()
    }

    /// Swaps the rules and returns the old ones: once nobody else holds them, no request uses them.
    pub(crate) fn replace(&self, rules: RuleSet) -> Arc<RuleSet> {
        self.0.swap(Arc::new(rules))
    }
}

#[cfg(test)]
mod tests {
    use slidegate::Rule;

    use super::*;

    #[test]
    fn a_request_keeps_its_snapshot_and_counts_as_a_reference() {
        let rules = |rate: &str| RuleSet::from_iter([Rule::new("api", rate).unwrap()]);
        let live = LiveRules::new(rules("5/1m"));
        let loaded = live.load();
        let before = live.replace(rules("7/1m"));
        assert_eq!(loaded.get("api").unwrap().cost_max(), 5);
        assert_eq!(live.load().get("api").unwrap().cost_max(), 7);
        assert_eq!(Arc::strong_count(&before), 2);
        drop(loaded);
        assert_eq!(Arc::strong_count(&before), 1);
    }
}
