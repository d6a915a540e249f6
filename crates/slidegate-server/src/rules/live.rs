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
