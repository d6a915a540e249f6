//! The rules in force, which a reload may replace at any time.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use slidegate::RuleSet;

/// The rules in force. A request loads them once and keeps them, whatever comes into force meanwhile.
#[derive(Debug)]
pub(crate) struct Live(ArcSwap<RuleSet>);

impl Live {
    pub(crate) fn new(rules: RuleSet) -> Self {
        Self(ArcSwap::from_pointee(rules))
    }

    /// The rules as they are now.
    pub(crate) fn load(&self) -> Guard<Arc<RuleSet>> {
        self.0.load()
    }

    /// Puts other rules in force, all at once, and hands back those before them: once nobody else holds these,
    /// no request goes by them any more.
    pub(crate) fn replace(&self, rules: RuleSet) -> Arc<RuleSet> {
        self.0.swap(Arc::new(rules))
    }
}

#[cfg(test)]
mod tests {
    use slidegate::Rule;

    use super::*;

    #[test]
    fn a_request_keeps_the_rules_that_it_loaded_and_is_counted() {
        let rules = |rate: &str| RuleSet::from_iter([Rule::new("api", rate).unwrap()]);
        let live = Live::new(rules("5/1m"));
        let loaded = live.load();
        let before = live.replace(rules("7/1m"));
        assert_eq!(loaded.get("api").unwrap().cost_max(), 5);
        assert_eq!(live.load().get("api").unwrap().cost_max(), 7);
        assert_eq!(Arc::strong_count(&before), 2);
        drop(loaded);
        assert_eq!(Arc::strong_count(&before), 1);
    }
}
