//! The rules in force, which a reload may replace at any time.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use slidegate::RuleSet;

/// The rules in force. Whoever loads them keeps those for a whole request, whatever comes into force meanwhile.
#[derive(Debug)]
pub(crate) struct Live {
    rules: ArcSwap<RuleSet>,
}

impl Live {
    pub(crate) fn new(rules: RuleSet) -> Self {
        Self { rules: ArcSwap::from_pointee(rules) }
    }

    /// The rules as they are now.
    pub(crate) fn load(&self) -> Guard<Arc<RuleSet>> {
        self.rules.load()
    }

    /// Puts other rules in force, all at once, and hands back those before them: once nobody else holds these,
    /// no request goes by them any more.
    pub(crate) fn replace(&self, rules: RuleSet) -> Arc<RuleSet> {
        self.rules.swap(Arc::new(rules))
    }
}

#[cfg(test)]
mod tests {
    use slidegate::Rule;

    use super::*;

    fn rules(rate: &str) -> RuleSet {
        [Rule::builder("api").limit(rate.parse().unwrap()).build().unwrap()].into_iter().collect()
    }

    #[test]
    fn a_request_keeps_the_rules_that_it_loaded() {
        let live = Live::new(rules("5/1m"));
        let before = live.load();
        live.replace(rules("7/1m"));
        assert_eq!(before.get("api").unwrap().cost_max(), 5);
        assert_eq!(live.load().get("api").unwrap().cost_max(), 7);
    }

    #[test]
    fn who_still_holds_the_rules_before_is_counted() {
        let live = Live::new(rules("5/1m"));
        let loaded = live.load();
        let before = live.replace(rules("7/1m"));
        assert_eq!(Arc::strong_count(&before), 2);
        drop(loaded);
        assert_eq!(Arc::strong_count(&before), 1);
    }
}
