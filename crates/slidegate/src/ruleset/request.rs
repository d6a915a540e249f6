//! What a request asks for, as it was parsed, and what a [`RuleSet`](super::RuleSet) makes of it.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::charge::Charge;
use crate::rate::Rate;
use crate::rule::{Algorithm, Rule};

/// Units of a rule for a key, as a request asks for them. Nothing is checked before
/// [`RuleSet::resolve`](super::RuleSet::resolve); the cost is checked by an [`Admission`](crate::Admission).
///
/// It borrows from what was parsed where it can.
///
/// ```
/// use slidegate::ruleset::ChargeRequest;
/// use slidegate::Algorithm;
///
/// let named = ChargeRequest::named("api", "alice", 2);
/// let inline = ChargeRequest::inline("5/1m".parse()?, Algorithm::Gcra, "alice", 1);
/// assert_eq!((named.rule.name(), inline.rule.name()), ("api", "gcra/60s"));
/// # Ok::<(), slidegate::RateError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChargeRequest<'a> {
    /// The rule that is charged.
    pub rule: RuleRef<'a>,
    /// Who is charged.
    pub key: Cow<'a, str>,
    /// Units asked for.
    pub cost: u64,
}

/// The rule of a request: one of the set, or one that the request brings along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleRef<'a> {
    /// The rule of that name.
    Named(Cow<'a, str>),
    /// The rule itself.
    Inline(InlineRule),
}

/// A rule that a request brings along: a rate and an algorithm.
#[derive(Debug, Clone)]
pub struct InlineRule {
    rate: Rate,
    algorithm: Algorithm,
    /// The rule, made when it is first needed and the set has no room to keep it.
    own: OnceLock<Box<Rule>>,
}

impl<'a> ChargeRequest<'a> {
    /// Units of the rule of that name.
    pub fn named(rule: impl Into<Cow<'a, str>>, key: impl Into<Cow<'a, str>>, cost: u64) -> Self {
        Self { rule: RuleRef::Named(rule.into()), key: key.into(), cost }
    }

    /// Units of a rule that the request brings along.
    pub fn inline(rate: Rate, algorithm: Algorithm, key: impl Into<Cow<'a, str>>, cost: u64) -> Self {
        Self { rule: RuleRef::Inline(InlineRule::new(rate, algorithm)), key: key.into(), cost }
    }
}

impl RuleRef<'_> {
    /// The name of the rule. For an inline rule it is made at the first call.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Inline(rule) => rule.own().name(),
        }
    }
}

impl InlineRule {
    /// A rule of one limit.
    #[must_use]
    pub fn new(rate: Rate, algorithm: Algorithm) -> Self {
        Self { rate, algorithm, own: OnceLock::new() }
    }

    /// Units per window.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How the window is kept.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The rule, kept here.
    pub(super) fn own(&self) -> &Rule {
        self.own.get_or_init(|| Box::new(Rule::inline(self.rate, self.algorithm)))
    }
}

/// Whether the rule was made already does not matter.
impl PartialEq for InlineRule {
    fn eq(&self, other: &Self) -> bool {
        (self.rate, self.algorithm) == (other.rate, other.algorithm)
    }
}

impl Eq for InlineRule {}

/// What the rules make of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// A charge under the rule, or under what an override makes of it; both have the rule's name.
    Limited(Charge<'a>),
    /// An override lets the key pass: it is charged nowhere.
    Unlimited(Charge<'a>),
    /// An override blocks the key: it never passes, and waiting does not help.
    Blocked(Charge<'a>),
}

impl<'a> Resolved<'a> {
    /// The charge that was asked for. Its rule is the one with the override where the key is unlimited or blocked.
    #[must_use]
    pub fn charge(&self) -> Charge<'a> {
        match *self {
            Self::Limited(charge) | Self::Unlimited(charge) | Self::Blocked(charge) => charge,
        }
    }

    /// The rule, whatever it means for the key.
    #[must_use]
    pub fn rule(&self) -> &'a Rule {
        self.charge().rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_rule_is_equal_to_one_that_was_made_already() {
        let rule = |rate: &str| InlineRule::new(rate.parse().unwrap(), Algorithm::SlidingLog);
        let made = rule("5/1m");
        assert_eq!(made.own().name(), "sliding-log/60s");
        assert_eq!((made == rule("5/1m"), made == rule("6/1m")), (true, false));
    }
}
