//! The rules in force, by name.

use std::collections::BTreeMap;

use slidegate::Rule;
use thiserror::Error;

use super::{Override, Overrides};
use crate::text::{nearest, shown};

/// Most names that an error lists.
const LISTED_MAX: usize = 5;
/// Most rules among which the one that was probably meant is looked for: an unknown name may come with
/// every request, and must not cost more than a known one by much.
const SEARCHED_MAX: usize = 200;

/// The rules in force. A live change replaces one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    by_name: BTreeMap<String, Entry>,
    /// The configuration file that forbids inline rules, if one does.
    inline_forbidden_by: Option<String>,
}

/// A rule, and what it means for keys of their own.
#[derive(Debug, Clone)]
struct Entry {
    rule: Rule,
    overrides: Overrides,
}

impl Rules {
    /// The rule of that name.
    pub(crate) fn get(&self, name: &str) -> Result<&Rule, UnknownRule> {
        self.entry(name).map(|entry| &entry.rule)
    }

    /// What a rule means for a key.
    pub(crate) fn resolve(&self, name: &str, key: &str) -> Result<Resolved<'_>, UnknownRule> {
        let Entry { rule, overrides } = self.entry(name)?;
        Ok(match overrides.of(key) {
            None => Resolved::Limited(rule),
            Some(Override::Limited(rule)) => Resolved::Limited(rule),
            Some(Override::Unlimited) => Resolved::Unlimited(rule),
            Some(Override::Blocked) => Resolved::Blocked(rule),
        })
    }

    /// The key or the pattern of the override that a rule has for a key, if it has one.
    pub(crate) fn overridden_by(&self, name: &str, key: &str) -> Option<&str> {
        self.by_name.get(name)?.overrides.find(key).map(|(written, _)| written)
    }

    fn entry(&self, name: &str) -> Result<&Entry, UnknownRule> {
        self.by_name.get(name).ok_or_else(|| UnknownRule { name: shown(name), remedy: self.remedy(name) })
    }

    /// All of them, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.by_name.values().map(|entry| &entry.rule)
    }

    /// All of them with their overrides, in the order of their names.
    pub(crate) fn with_overrides(&self) -> impl Iterator<Item = (&Rule, &Overrides)> {
        self.by_name.values().map(|entry| (&entry.rule, &entry.overrides))
    }

    /// Puts a rule in force, in place of one of the same name, whose overrides stay.
    pub(crate) fn replace(&mut self, rule: Rule) {
        match self.by_name.get_mut(rule.name()) {
            Some(entry) => entry.rule = rule,
            None => self.add(rule, Overrides::default()),
        }
    }

    /// Puts a rule in force, with its overrides.
    pub(crate) fn add(&mut self, rule: Rule, overrides: Overrides) {
        self.by_name.insert(rule.name().to_owned(), Entry { rule, overrides });
    }

    /// The same rules, as the only ones: `file` does not allow inline rules.
    pub(crate) fn forbidding_inline(self, file: &str) -> Self {
        Self { inline_forbidden_by: Some(file.to_owned()), ..self }
    }

    /// Whether requests may bring their own rules.
    pub(crate) fn check_inline(&self) -> Result<(), InlineForbidden> {
        match &self.inline_forbidden_by {
            None => Ok(()),
            Some(file) => Err(InlineForbidden { file: file.clone() }),
        }
    }

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

/// What a rule means for one key: its own limits, unless an override says otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resolved<'a> {
    /// The rule, or what an override makes of it; both have its name.
    Limited(&'a Rule),
    /// Always passes, and is charged nowhere.
    Unlimited(&'a Rule),
    /// Never passes, however long one waits.
    Blocked(&'a Rule),
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut collected = Self::default();
        rules.into_iter().for_each(|rule| collected.add(rule, Overrides::default()));
        collected
    }
}

/// No rule has that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("rule: `{name}` is unknown; {remedy}")]
pub(crate) struct UnknownRule {
    name: String,
    remedy: String,
}

/// A request brought its own rule where only named ones are allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("rule: inline rules are not allowed; add `inline_rules: true` to {file} or name a rule of it")]
pub(crate) struct InlineForbidden {
    file: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, rate: &str) -> Rule {
        Rule::builder(name).limit(rate.parse().unwrap()).build().unwrap()
    }

    fn error(rules: &Rules, name: &str) -> String {
        rules.get(name).unwrap_err().to_string()
    }

    #[test]
    fn the_last_rule_of_a_name_is_in_force() {
        let mut rules: Rules = [rule("api", "5/1m"), rule("dear", "1/1h")].into_iter().collect();
        rules.replace(rule("api", "7/1m"));
        assert_eq!(rules.get("api").unwrap().cost_max(), 7);
        assert_eq!(rules.get("dear").unwrap().cost_max(), 1);
    }

    #[test]
    fn a_rule_means_for_a_key_what_its_override_says() {
        let mut overrides = Overrides::default();
        overrides.add("alice", Override::Limited(rule("api", "600/1m"))).unwrap();
        overrides.add("ci-*", Override::Unlimited).unwrap();
        overrides.add("mallory", Override::Blocked).unwrap();
        let mut rules = Rules::default();
        rules.add(rule("api", "60/1m"), overrides);
        let resolved = |key: &str| rules.resolve("api", key).unwrap();
        assert!(matches!(resolved("alice"), Resolved::Limited(rule) if rule.cost_max() == 600));
        assert!(matches!(resolved("bob"), Resolved::Limited(rule) if rule.cost_max() == 60));
        assert!(matches!(resolved("ci-7"), Resolved::Unlimited(rule) if rule.name() == "api"));
        assert!(matches!(resolved("mallory"), Resolved::Blocked(rule) if rule.name() == "api"));
        assert!(rules.resolve("apy", "alice").is_err());

        rules.replace(rule("api", "70/1m"));
        let resolved = |key: &str| rules.resolve("api", key).unwrap();
        assert!(matches!(resolved("bob"), Resolved::Limited(rule) if rule.cost_max() == 70));
        assert!(matches!(resolved("mallory"), Resolved::Blocked(_)), "overrides stay");
    }

    #[test]
    fn an_unknown_rule_comes_with_a_remedy() {
        let rules: Rules = [rule("api", "5/1m"), rule("login", "5/1m")].into_iter().collect();
        assert_eq!(error(&rules, "apy"), "rule: `apy` is unknown; did you mean `api`?");
        assert_eq!(error(&rules, "search"), "rule: `search` is unknown; choose from: api, login");
        assert!(error(&Rules::default(), "api").ends_with("give one, or write the rule inline"));
    }

    #[test]
    fn many_rules_are_neither_listed_nor_searched() {
        let rules = |count| -> Rules { (0..count).map(|n| rule(&format!("rule-{n:04}"), "5/1m")).collect() };
        let listed = "choose from: rule-0000, rule-0001, rule-0002, rule-0003, rule-0004";
        assert_eq!(error(&rules(5), "x"), format!("rule: `x` is unknown; {listed}"));
        assert_eq!(error(&rules(6), "x"), format!("rule: `x` is unknown; {listed} and 1 more"));
        assert!(error(&rules(SEARCHED_MAX), "rule-077").ends_with("did you mean `rule-0077`?"));
        assert!(error(&rules(1_001), "rule-077").ends_with("and 996 more"));
    }

    #[test]
    fn a_file_may_forbid_inline_rules() {
        let rules: Rules = [rule("api", "5/1m")].into_iter().collect();
        assert_eq!(rules.check_inline(), Ok(()));
        let error = rules.forbidding_inline("rules.yaml").check_inline().unwrap_err().to_string();
        assert!(error.ends_with("add `inline_rules: true` to rules.yaml or name a rule of it"), "{error}");
    }
}
