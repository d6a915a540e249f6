//! The rules in force, by name.

use std::collections::BTreeMap;

use slidegate::Rule;
use thiserror::Error;

use super::{did_you_mean, shown};

/// The rules in force. A live change replaces one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    by_name: BTreeMap<String, Rule>,
}

impl Rules {
    /// The rule of that name.
    pub(crate) fn get(&self, name: &str) -> Result<&Rule, UnknownRule> {
        self.by_name.get(name).ok_or_else(|| UnknownRule {
            name: shown(name),
            remedy: match self.by_name.len() {
                0 => "there are no named rules without a configuration file; give one, or write the rule inline".into(),
                _ => did_you_mean(name, self.by_name.keys().map(String::as_str)),
            },
        })
    }

    /// Puts a rule in force, in place of one of the same name.
    pub(crate) fn replace(&mut self, rule: Rule) {
        self.by_name.insert(rule.name().to_owned(), rule);
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { by_name: rules.into_iter().map(|rule| (rule.name().to_owned(), rule)).collect() }
    }
}

/// No rule has that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("rule: `{name}` is unknown; {remedy}")]
pub(crate) struct UnknownRule {
    name: String,
    remedy: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, rate: &str) -> Rule {
        Rule::builder(name).limit(rate.parse().unwrap()).build().unwrap()
    }

    #[test]
    fn the_last_rule_of_a_name_is_in_force() {
        let mut rules: Rules = [rule("api", "5/1m"), rule("dear", "1/1h")].into_iter().collect();
        rules.replace(rule("api", "7/1m"));
        assert_eq!(rules.get("api").unwrap().cost_max(), 7);
        assert_eq!(rules.get("dear").unwrap().cost_max(), 1);
    }

    #[test]
    fn an_unknown_rule_comes_with_a_remedy() {
        let rules: Rules = [rule("api", "5/1m"), rule("login", "5/1m")].into_iter().collect();
        let error = |rules: &Rules, name: &str| rules.get(name).unwrap_err().to_string();
        assert_eq!(error(&rules, "apy"), "rule: `apy` is unknown; did you mean `api`?");
        assert_eq!(error(&rules, "search"), "rule: `search` is unknown; choose from: api, login");
        assert!(error(&Rules::default(), "api").ends_with("give one, or write the rule inline"));
    }
}
