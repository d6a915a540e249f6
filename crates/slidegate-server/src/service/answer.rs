//! What the service answers, before a wire writes it.

use slidegate::store::LimitUsage;
use slidegate::{Decision, Receipt, Resolved, Rule};

/// The answer to a check or a peek.
#[derive(Debug)]
pub(crate) struct Checked<'a> {
    pub(crate) said: Said<'a>,
    /// For every charge whether an override lets it pass for free; empty if none is, or all are.
    pub(crate) is_free: Vec<bool>,
}

impl<'a> Checked<'a> {
    /// Overrides let every charge pass; the rule is that of the first.
    pub(super) fn unlimited(rule: &'a Rule) -> Self {
        Self { said: Said::Unlimited { rule: rule.name() }, is_free: Vec::new() }
    }
}

/// Who said what.
#[derive(Debug)]
pub(crate) enum Said<'a> {
    /// The store decided.
    Decided { decision: Decision<'a>, receipt: Option<Receipt<'a>> },
    /// An override lets every charge pass, and nothing is counted.
    Unlimited { rule: &'a str },
    /// The store did not answer, and the outage policy lets the request pass.
    Degraded { rule: &'a str },
}

/// What a rule means for a key, and what is used of it.
#[derive(Debug)]
pub(crate) struct Explained<'a> {
    pub(crate) resolved: Resolved<'a>,
    /// The key or the pattern of the override that stands in the place of the rule's own limits.
    pub(crate) overridden_by: Option<&'a str>,
    pub(crate) usages: Vec<LimitUsage>,
    /// What would be said to this charge alone, if the rule has something to say.
    pub(crate) decision: Option<Decision<'a>>,
}
