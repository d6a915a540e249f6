//! What one rule of a configuration file means.

use serde_saphyr::{Location, Spanned};
use slidegate::rule::{AtBudget, Decimal, OnStoreError};
use slidegate::ruleset::Overrides;
use slidegate::{Algorithm, Rate, Rule};

use super::mistake::Mistake;
use super::node::{Node, Value};
use super::scalar::{boolean, whole, word};
use super::{overrides, policy};
use crate::rules::AlgorithmText;
use crate::text::{did_you_mean, shown};

/// What the fields of a rule are called.
pub(super) const FIELDS: [&str; 11] = [
    "limit",
    "limits",
    "algorithm",
    "buckets",
    "edge",
    "entries",
    "headroom",
    "shadow",
    "on_store_error",
    "at_budget",
    "overrides",
];
/// Fields that are promised, but that this version cannot keep.
const FIELDS_LATER: [&str; 1] = ["match"];

/// A rule as a file gives it.
#[derive(Debug, Clone)]
pub(super) struct FileRule {
    pub(super) rule: Rule,
    pub(super) overrides: Overrides,
    /// Where its name stands.
    pub(super) at: Location,
    /// Whether it says what answers when the store does not.
    pub(super) has_policy: bool,
}

/// Reads a rule, or says everything that is wrong with it.
pub(super) fn read(name: &Spanned<String>, node: &Node, mistakes: &mut Vec<Mistake>) -> Option<FileRule> {
    let Value::Map(fields) = &node.value else {
        let found = node.value.kind();
        let name = shown(&name.value);
        let text = format!("rule `{name}`: expected fields, found {found}; write {{ limit: 60/1m }}");
        mistakes.push(Mistake::at(node.referenced, &text));
        return None;
    };
    let mut reader = Reader { name: &name.value, fields, found: Vec::new() };
    reader.check_names();
    let rates = reader.rates(name.referenced);
    let algorithm = reader.algorithm();
    let headroom = reader.field("headroom", policy::decimal);
    let shadow = reader.field("shadow", boolean);
    let on_store_error = reader.field("on_store_error", policy::on_store_error);
    let at_budget = reader.field("at_budget", policy::at_budget);
    if reader.found.is_empty() {
        let parts = Parts { rates, algorithm, headroom, shadow, on_store_error, at_budget };
        match parts.build(&name.value) {
            Ok(rule) => {
                let overrides = reader.node("overrides").map(|node| overrides::read(&rule, node, mistakes));
                let overrides = overrides.unwrap_or_default();
                let has_policy = on_store_error.is_some();
                return Some(FileRule { rule, overrides, at: name.referenced, has_policy });
            }
            Err(text) => reader.found.push(Mistake::at(name.referenced, &text)),
        }
    }
    mistakes.append(&mut reader.found);
    None
}

/// The parts of a rule, each good in itself.
struct Parts {
    rates: Vec<Rate>,
    algorithm: Algorithm,
    headroom: Option<Decimal>,
    shadow: Option<bool>,
    on_store_error: Option<OnStoreError>,
    at_budget: Option<AtBudget>,
}

impl Parts {
    fn build(self, name: &str) -> Result<Rule, String> {
        let mut builder = Rule::builder(name)
            .algorithm(self.algorithm)
            .headroom(self.headroom.unwrap_or_default())
            .shadow(self.shadow.unwrap_or_default())
            .on_store_error(self.on_store_error.unwrap_or_default())
            .at_budget(self.at_budget.unwrap_or_default());
        for rate in self.rates {
            builder = builder.limit(rate);
        }
        builder.build().map_err(|error| error.to_string())
    }
}

/// Takes fields out of a rule and collects what is wrong with them.
struct Reader<'a> {
    name: &'a str,
    fields: &'a [(Spanned<String>, Node)],
    found: Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn mistake(&mut self, at: Location, text: &str) {
        self.found.push(Mistake::at(at, &format!("rule `{}`: {text}", shown(self.name))));
    }

    fn node(&self, field: &str) -> Option<&'a Node> {
        self.fields.iter().find(|(name, _)| name.value == field).map(|(_, node)| node)
    }

    /// Reads a field if it is there.
    fn field<T>(&mut self, field: &str, read: impl Fn(&'a Node) -> Result<T, String>) -> Option<T> {
        let node = self.node(field)?;
        read(node).map_err(|text| self.mistake(node.referenced, &format!("{field}: {text}"))).ok()
    }

    fn check_names(&mut self) {
        for (name, _) in self.fields {
            let field = name.value.as_str();
            if FIELDS_LATER.contains(&field) {
                let text = format!("{field}: is not supported by this version; remove it");
                self.mistake(name.referenced, &text);
            } else if !FIELDS.contains(&field) {
                let remedy = did_you_mean(field, &FIELDS);
                let text = format!("{}: is not a field of a rule; {remedy}", shown(field));
                self.mistake(name.referenced, &text);
            }
        }
    }

    /// Exactly one of `limit` and `limits`.
    fn rates(&mut self, rule_at: Location) -> Vec<Rate> {
        match (self.node("limit"), self.node("limits")) {
            (Some(_), None) => self.field("limit", rate).into_iter().collect(),
            (None, Some(node)) => {
                let Value::List(items) = &node.value else {
                    let found = node.value.kind();
                    let text = format!("limits: expected a list, found {found}; write [5/1s, 100/5m]");
                    self.mistake(node.referenced, &text);
                    return Vec::new();
                };
                let mut rates = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    match rate(item) {
                        Ok(rate) => rates.push(rate),
                        Err(text) => self.mistake(item.referenced, &format!("limits[{index}]: {text}")),
                    }
                }
                rates
            }
            (Some(_), Some(limits)) => {
                self.mistake(limits.referenced, "limits: is given beside limit; keep one of them");
                Vec::new()
            }
            (None, None) => {
                self.mistake(rule_at, "limit: is missing; write for example limit: 60/1m");
                Vec::new()
            }
        }
    }

    fn algorithm(&mut self) -> Algorithm {
        let text = AlgorithmText {
            algorithm: self.field("algorithm", word),
            buckets: self.field("buckets", whole),
            edge: self.field("edge", word),
            entries: self.field("entries", whole),
        };
        if text.algorithm.is_none() && self.node("algorithm").is_some() {
            return Algorithm::default(); // A mistake already; which parameters belong is not known.
        }
        text.parse().unwrap_or_else(|errors| {
            for error in errors {
                let at = self.node(error.field).map_or(Location::UNKNOWN, |node| node.referenced);
                self.mistake(at, &error.to_string());
            }
            Algorithm::default()
        })
    }
}

/// Reads `LIMIT/WINDOW`; the text of a mistake does not name the field.
pub(super) fn rate(node: &Node) -> Result<Rate, String> {
    let Value::Text(text) = &node.value else {
        return Err(format!("expected LIMIT/WINDOW, found {}; write for example 60/1m", node.value.kind()));
    };
    // The field is named by the caller, who knows whether it is `limit` or one of `limits`.
    text.parse().map_err(|error: slidegate::RateError| {
        let text = error.to_string();
        text.strip_prefix("limit: ").unwrap_or(&text).to_owned()
    })
}
