//! The rules in force, by name.

use std::collections::BTreeMap;

use thiserror::Error;

use super::inline_table::InlineTable;
use super::{ChargeRequest, Override, Overrides, Resolved, RuleRef, nearest};
use crate::charge::Charge;
use crate::key::KeyError;
use crate::rate::truncated;
use crate::rule::Rule;

/// Most names that an error lists.
const LISTED_MAX: usize = 5;
/// Most rules that are searched for a suggestion: an unknown name may come with every request, and must not cost much
/// more than a known one.
const SEARCHED_MAX: usize = 200;

/// Rules by name, each with its [`Overrides`], and whether inline rules are allowed.
///
/// Any number of threads can read a set at once. To change a shared set, swap in a changed copy, so that a request sees
/// the same rules from beginning to end.
///
/// ```
/// use slidegate::ruleset::{ChargeRequest, Resolved, RuleSet};
/// use slidegate::{Algorithm, Rule};
///
/// let mut rules: RuleSet = [Rule::builder("api").limit("60/1m".parse()?).build()?].into_iter().collect();
/// assert_eq!(rules.get("api")?.cost_max(), 60);
/// let error = rules.get("apy").unwrap_err().to_string();
/// assert_eq!(error, "rule: `apy` is unknown; did you mean `api`?");
///
/// // A request may have an inline rule, unless the set forbids it.
/// let request = ChargeRequest::inline("5/1m".parse()?, Algorithm::SlidingLog, "alice", 1);
/// assert!(matches!(rules.resolve(&request)?, Resolved::Limited(_)));
/// rules.forbid_inline("rules.yaml");
/// assert!(rules.resolve(&request).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    by_name: BTreeMap<String, (Rule, Overrides)>,
    inline_forbidden_by: Option<String>,
    inline: InlineTable,
}

impl RuleSet {
    /// A set without named rules, which allows inline rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule; it replaces a rule of the same name and its overrides.
    pub fn insert(&mut self, rule: Rule) {
        self.insert_with(rule, Overrides::default());
    }

    /// Adds a rule with overrides; they replace a rule of the same name and its overrides.
    pub fn insert_with(&mut self, rule: Rule, overrides: Overrides) {
        self.by_name.insert(rule.name().to_owned(), (rule, overrides));
    }

    /// Adds a rule; it replaces a rule of the same name, whose overrides stay.
    pub fn replace(&mut self, rule: Rule) {
        match self.by_name.get_mut(rule.name()) {
            Some((old, _)) => *old = rule,
            None => self.insert(rule),
        }
    }

    /// Allows named rules only. `source` is where this is configured, for example a file; errors name it.
    pub fn forbid_inline(&mut self, source: &str) {
        self.inline_forbidden_by = Some(source.to_owned());
    }

    /// Allows inline rules, as a new set does.
    pub fn allow_inline(&mut self) {
        self.inline_forbidden_by = None;
    }

    /// Whether inline rules are allowed.
    #[must_use]
    pub fn allows_inline(&self) -> bool {
        self.inline_forbidden_by.is_none()
    }

    /// What forbids inline rules; `None` if they are allowed.
    #[must_use]
    pub fn inline_forbidden_by(&self) -> Option<&str> {
        self.inline_forbidden_by.as_deref()
    }

    /// The rule of that name.
    pub fn get(&self, name: &str) -> Result<&Rule, ResolveError> {
        self.entry(name).map(|(rule, _)| rule)
    }

    /// The overrides of the rule of that name, if it exists.
    #[must_use]
    pub fn overrides(&self, name: &str) -> Option<&Overrides> {
        self.by_name.get(name).map(|(_, overrides)| overrides)
    }

    /// The key or pattern of the override that applies to a key, if there is one.
    #[must_use]
    pub fn overridden_by(&self, name: &str, key: &str) -> Option<&str> {
        self.overrides(name)?.find(key).map(|(written, _)| written)
    }

    /// All rules, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.by_name.values().map(|(rule, _)| rule)
    }

    /// All rules with their overrides, in the order of their names.
    pub fn with_overrides(&self) -> impl Iterator<Item = (&Rule, &Overrides)> {
        self.by_name.values().map(|(rule, overrides)| (rule, overrides))
    }

    /// Resolves a request. Its cost is not checked.
    pub fn resolve<'a>(&'a self, request: &'a ChargeRequest<'a>) -> Result<Resolved<'a>, ResolveError> {
        let (rule, meant) = match &request.rule {
            RuleRef::Named(name) => {
                let (rule, overrides) = self.entry(name)?;
                (rule, overrides.get(&request.key))
            }
            RuleRef::Inline(inline) => {
                if let Some(source) = &self.inline_forbidden_by {
                    return Err(ResolveError::InlineForbidden { forbidden_by: source.clone() });
                }
                (self.inline.get(inline).unwrap_or_else(|| inline.own()), None)
            }
        };
        let key = request.checked_key()?;
        let charge = |rule| Charge::new(rule, key, request.cost);
        Ok(match meant {
            None => Resolved::Limited(charge(rule)),
            Some(Override::Limited(own)) => Resolved::Limited(charge(own)),
            Some(Override::Unlimited) => Resolved::Unlimited(charge(rule)),
            Some(Override::Blocked) => Resolved::Blocked(charge(rule)),
        })
    }

    fn entry(&self, name: &str) -> Result<&(Rule, Overrides), ResolveError> {
        let unknown = || ResolveError::UnknownRule { name: truncated(name), remedy: self.remedy(name) };
        self.by_name.get(name).ok_or_else(unknown)
    }

    #[cold]
    fn remedy(&self, name: &str) -> String {
        let names = || self.by_name.keys().map(String::as_str);
        let count = self.by_name.len();
        if count == 0 {
            let none = "there are no named rules without a configuration file";
            return format!("{none}; give one, or write the rule inline");
        }
        if let Some(meant) = nearest(name, names().take(if count > SEARCHED_MAX { 0 } else { count })) {
            return format!("did you mean `{meant}`?");
        }
        let listed = names().take(LISTED_MAX).collect::<Vec<_>>().join(", ");
        match count.saturating_sub(LISTED_MAX) {
            0 => format!("choose from: {listed}"),
            more => format!("choose from: {listed} and {more} more"),
        }
    }
}

/// Why a request does not resolve. Nothing was charged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No rule has that name.
    #[error("rule: `{name}` is unknown; {remedy}")]
    UnknownRule {
        /// The first characters of the name.
        name: String,
        /// A suggested name, or a list of some names.
        remedy: String,
    },
    /// A request has an inline rule, but only named rules are allowed.
    #[error(
        "rule: inline rules are not allowed; add `inline_rules: true` to {forbidden_by} or name a rule of it"
    )]
    InlineForbidden {
        /// What forbids them: see [`RuleSet::forbid_inline`].
        forbidden_by: String,
    },
    /// The text is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut collected = Self::default();
        rules.into_iter().for_each(|rule| collected.insert(rule));
        collected
    }
}

#[cfg(test)]
mod tests;
