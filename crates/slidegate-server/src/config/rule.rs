//! What one rule of a configuration file means.

use serde_saphyr::{Location, Spanned};
use slidegate::ruleset::{Override, Overrides};
use slidegate::{Algorithm, Rate, Rule};

use super::mistake::Findings;
use super::node::{Node, Value};
use super::section::{LATER, Section};
use super::values::{at_budget, boolean, decimal, on_store_error, rate, whole, word};
use crate::rules::AlgorithmText;
use crate::text::{did_you_mean, excerpt, nearest};

/// What the fields of a rule are called.
const FIELDS: [&str; 11] = [
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

const MEANINGS: &str = "write a rate such as 600/1m, a list of rates, unlimited or blocked";
const WORDS: [&str; 2] = ["unlimited", "blocked"];

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
pub(super) fn read(name: &Spanned<String>, node: &Node, found: &mut Findings) -> Option<FileRule> {
    let (prefix, at) = (format!("rule `{}`: ", excerpt(&name.value)), name.referenced);
    let mut section = Section::open(prefix, node, ("fields", "{ limit: 60/1m }"), found)?;
    for (name, _) in section.fields {
        section.check_name(name, &FIELDS, &[("match", LATER)], "is not a field of a rule");
    }
    let rates = rates(&mut section, at);
    let rule = rates.into_iter().fold(Rule::builder(&name.value), slidegate::RuleBuilder::limit);
    let rule = rule
        .algorithm(algorithm(&mut section))
        .headroom(section.read("headroom", decimal).unwrap_or_default())
        .shadow(section.read("shadow", boolean).unwrap_or_default());
    let policy = section.read("on_store_error", on_store_error);
    let rule = rule
        .on_store_error(policy.unwrap_or_default())
        .at_budget(section.read("at_budget", at_budget).unwrap_or_default());
    if !section.is_good() {
        return None;
    }
    let given = section.node("overrides");
    let rule = rule.build().map_err(|error| found.add(at, &error.to_string())).ok()?;
    let overrides = given.map(|node| overrides(&rule, node, found)).unwrap_or_default();
    Some(FileRule { rule, overrides, at, has_policy: policy.is_some() })
}

/// Exactly one of `limit` and `limits`.
fn rates(section: &mut Section<'_, '_>, rule_at: Location) -> Vec<Rate> {
    match (section.node("limit"), section.node("limits")) {
        (Some(_), None) => section.read("limit", rate).into_iter().collect(),
        (None, Some(Node { value: Value::List(items), .. })) => {
            let read = items.iter().enumerate().filter_map(|(index, item)| {
                let wrong = |text| section.mistake(item.referenced, &format!("limits[{index}]: {text}"));
                rate(item).map_err(wrong).ok()
            });
            read.collect()
        }
        (None, Some(node)) => {
            let text = format!("limits: expected a list, found {}; write [5/1s, 100/5m]", node.value.kind());
            section.mistake(node.referenced, &text);
            Vec::new()
        }
        (Some(_), Some(limits)) => {
            section.mistake(limits.referenced, "limits: is given beside limit; keep one of them");
            Vec::new()
        }
        (None, None) => {
            section.mistake(rule_at, "limit: is missing; write for example limit: 60/1m");
            Vec::new()
        }
    }
}

fn algorithm(section: &mut Section<'_, '_>) -> Algorithm {
    let text = AlgorithmText {
        algorithm: section.read("algorithm", word),
        buckets: section.read("buckets", whole),
        edge: section.read("edge", word),
        entries: section.read("entries", whole),
    };
    if text.algorithm.is_none() && section.node("algorithm").is_some() {
        return Algorithm::default(); // A mistake already; which parameters belong is not known.
    }
    text.parse().unwrap_or_else(|errors| {
        for (field, text) in errors {
            let at = section.node(field).map_or(Location::UNKNOWN, |node| node.referenced);
            section.mistake(at, &text);
        }
        Algorithm::default()
    })
}

/// Reads the overrides of `rule`: `{ alice: 600/1m, "ci-*": unlimited, mallory: blocked }`.
fn overrides(rule: &Rule, node: &Node, found: &mut Findings) -> Overrides {
    let mut overrides = Overrides::default();
    let prefix = format!("rule `{}`: overrides: ", excerpt(rule.name()));
    let expected = ("keys", "{ alice: 600/1m }");
    let Some(mut section) = Section::open(prefix, node, expected, found) else { return overrides };
    for (key, node) in section.fields {
        let added = meaning(rule, node).and_then(|meant| {
            overrides.add(&key.value, meant).map_err(|error| vec![(key.referenced, error.to_string())])
        });
        for (at, text) in added.err().into_iter().flatten() {
            section.mistake(at, &format!("`{}`: {text}", excerpt(&key.value)));
        }
    }
    overrides
}

/// What stands at a key, or everything that is wrong with it.
fn meaning(rule: &Rule, node: &Node) -> Result<Override, Vec<(Location, String)>> {
    let wrong = |text: String| vec![(node.referenced, text)];
    let rates = match &node.value {
        Value::Text(text) if text == "unlimited" => return Ok(Override::Unlimited),
        Value::Text(text) if text == "blocked" => return Ok(Override::Blocked),
        Value::Text(text) if nearest(text, WORDS.into_iter()).is_some() => {
            return Err(wrong(format!("`{}` is unknown; {}", excerpt(text), did_you_mean(text, &WORDS))));
        }
        Value::Text(_) => {
            vec![rate(node).map_err(|text| wrong(format!("{text}; or write unlimited or blocked")))?]
        }
        Value::List(items) => {
            let (mut rates, mut wrong) = (Vec::new(), Vec::new());
            for item in items {
                match rate(item) {
                    Ok(rate) => rates.push(rate),
                    Err(text) => wrong.push((item.referenced, text)),
                }
            }
            if !wrong.is_empty() {
                return Err(wrong);
            }
            rates
        }
        other => return Err(wrong(format!("found {}; {MEANINGS}", other.kind()))),
    };
    rule.with_rates(&rates).map(Override::Limited).map_err(|error| {
        let text = error.to_string();
        let prefix = format!("rule `{}`: ", rule.name());
        wrong(text.strip_prefix(&prefix).unwrap_or(&text).to_owned())
    })
}
