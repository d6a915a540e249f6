//! A parsed request for a charge, and its resolution by a [`RuleSet`](super::RuleSet).

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::charge::Charge;
use crate::key::{Key, KeyError, OwnedKey};
use crate::rate::Rate;
use crate::rule::{Algorithm, Rule};

/// A request for units of a rule for a key, unchecked. [`RuleSet::resolve`](super::RuleSet::resolve) checks the rule,
/// the key and the tag; an [`Admission`](crate::Admission) checks the cost.
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
    /// Rarely given, so it costs the other requests one word.
    tag: Option<Box<RequestTag>>,
}

/// The tag of a request.
#[derive(Debug, Clone)]
struct RequestTag {
    tag: Box<str>,
    /// Key and tag as one, made when the request is resolved: a charge borrows it.
    joined: OnceLock<OwnedKey>,
}

/// The rule of a request: a named rule of the set, or an inline rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleRef<'a> {
    /// The name of a rule of the set.
    Named(Cow<'a, str>),
    /// An inline rule.
    Inline(InlineRule),
}

/// A rule given with the request: a rate and an algorithm.
#[derive(Debug, Clone)]
pub struct InlineRule {
    rate: Rate,
    algorithm: Algorithm,
    /// The rule, built on first use if the set's cache has no room for it.
    own: OnceLock<Box<Rule>>,
}

impl<'a> ChargeRequest<'a> {
    /// A request for units of a named rule.
    pub fn named(rule: impl Into<Cow<'a, str>>, key: impl Into<Cow<'a, str>>, cost: u64) -> Self {
        Self::new(RuleRef::Named(rule.into()), key, cost)
    }

    /// A request for units of an inline rule.
    pub fn inline(rate: Rate, algorithm: Algorithm, key: impl Into<Cow<'a, str>>, cost: u64) -> Self {
        Self::new(RuleRef::Inline(InlineRule::new(rate, algorithm)), key, cost)
    }

    /// A request for units of a rule.
    pub fn new(rule: RuleRef<'a>, key: impl Into<Cow<'a, str>>, cost: u64) -> Self {
        Self { rule, key: key.into(), cost, tag: None }
    }

    /// The same request on the state of this tag, or without one. Overrides apply by the key alone.
    ///
    /// ```
    /// use slidegate::ruleset::{ChargeRequest, RuleSet};
    /// use slidegate::{Limiter, Rule};
    ///
    /// let rules: RuleSet = [Rule::new("api", "5/1m")?].into_iter().collect();
    /// let request = [ChargeRequest::named("api", "alice", 2).with_tag(Some("team:7"))];
    /// let decision = Limiter::in_memory().decide(&rules.admission(&request)?)?;
    /// assert_eq!((decision.binding().key(), decision.binding().tag()), ("alice", Some("team:7")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_tag(self, tag: Option<&str>) -> Self {
        let tag = tag.map(|tag| Box::new(RequestTag { tag: tag.into(), joined: OnceLock::new() }));
        Self { tag, ..self }
    }

    /// The tag, if it has one.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_ref().map(|tag| &*tag.tag)
    }

    /// The key with its tag, checked.
    ///
    /// # Panics
    ///
    /// If the request has a tag, and its key was changed after an earlier call.
    pub fn checked_key(&self) -> Result<Key<'_>, KeyError> {
        let Some(tag) = &self.tag else { return Key::new(&self.key) };
        if tag.joined.get().is_none() {
            let _made_meanwhile = tag.joined.set(OwnedKey::tagged(&self.key, &tag.tag)?);
        }
        let joined = tag.joined.get().expect("it was just made").key();
        assert_eq!(joined.as_str(), self.key, "the key of a resolved request was changed");
        Ok(joined)
    }
}

/// Ignores whether the key was joined already.
impl PartialEq for RequestTag {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }
}

impl Eq for RequestTag {}

impl RuleRef<'_> {
    /// The name of the rule. For an inline rule the first call builds it.
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

    /// The algorithm of the window.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The rule, cached in this request.
    pub(super) fn own(&self) -> &Rule {
        self.own.get_or_init(|| Box::new(Rule::inline(self.rate, self.algorithm)))
    }
}

/// Ignores whether the rule was built already.
impl PartialEq for InlineRule {
    fn eq(&self, other: &Self) -> bool {
        (self.rate, self.algorithm) == (other.rate, other.algorithm)
    }
}

impl Eq for InlineRule {}

/// The resolution of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// A charge under the rule, or under its override's limits; both have the rule's name.
    Limited(Charge<'a>),
    /// An override lets the key pass: it is charged nowhere.
    Unlimited(Charge<'a>),
    /// An override blocks the key: it never passes, and waiting does not help.
    Blocked(Charge<'a>),
}

impl<'a> Resolved<'a> {
    /// The requested charge. For an unlimited or blocked key its rule is the one with the override.
    #[must_use]
    pub fn charge(&self) -> Charge<'a> {
        match *self {
            Self::Limited(charge) | Self::Unlimited(charge) | Self::Blocked(charge) => charge,
        }
    }

    /// The rule of the charge.
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
