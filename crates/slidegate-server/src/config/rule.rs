//! Reads one rule of a configuration file.

use serde_saphyr::{Location, Spanned};
use slidegate::ruleset::{Override, Overrides};
use slidegate::{Algorithm, Rate, Rule};

use super::finding::Findings;
use super::node::{Node, YamlValue};
use super::rule_values::{at_budget, boolean, decimal, on_store_error, rate, shards, take_over, whole, word};
use super::section::{Section, UNSUPPORTED};
use crate::rules::AlgorithmFields;
use crate::text::{did_you_mean, excerpt, nearest};

/// Names of the fields of a rule.
const FIELDS: [&str; 13] = [
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
    "shards",
    "take_over",
    "overrides",
];

const OVERRIDE_FORMS: &str = "write a rate such as 600/1m, a list of rates, unlimited or blocked";
const OVERRIDE_WORDS: [&str; 2] = ["unlimited", "blocked"];

/// A rule of a configuration file.
#[derive(Debug, Clone)]
pub(super) struct FileRule {
    pub(super) rule: Rule,
    pub(super) overrides: Overrides,
    /// The position of its name.
    pub(super) at: Location,
    /// Whether it sets `on_store_error`.
    pub(super) has_policy: bool,
}

/// Reads a rule; adds all its mistakes to `findings`.
pub(super) fn read(name: &Spanned<String>, node: &Node, findings: &mut Findings) -> Option<FileRule> {
    let (prefix, at) = (format!("rule `{}`: ", excerpt(&name.value)), name.referenced);
    let mut section = Section::open(prefix, node, ("fields", "{ limit: 60/1m }"), findings)?;
    for (name, _) in section.fields {
        section.check_name(name, &FIELDS, &[("match", UNSUPPORTED)], "is not a field of a rule");
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
        .at_budget(section.read("at_budget", at_budget).unwrap_or_default())
        .shards(section.read("shards", shards).unwrap_or(1));
    let rule = section.read("take_over", take_over).into_iter().fold(rule, slidegate::RuleBuilder::take_over);
    if !section.has_no_mistakes() {
        return None;
    }
    let given = section.node("overrides");
    let rule = rule.build().map_err(|error| findings.add(at, &error.to_string())).ok()?;
    let overrides = given.map(|node| overrides(&rule, node, findings)).unwrap_or_default();
    Some(FileRule { rule, overrides, at, has_policy: policy.is_some() })
}

/// Reads `limit` or `limits`; exactly one must be given.
fn rates(section: &mut Section<'_, '_>, rule_at: Location) -> Vec<Rate> {
    match (section.node("limit"), section.node("limits")) {
        (Some(_), None) => section.read("limit", rate).into_iter().collect(),
        (None, Some(Node { value: YamlValue::List(items), .. })) => {
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
            section.mistake(limits.referenced, "limits: cannot be combined with limit; keep one of them");
            Vec::new()
        }
        (None, None) => {
            section.mistake(rule_at, "limit: is missing; write for example limit: 60/1m");
            Vec::new()
        }
    }
}

fn algorithm(section: &mut Section<'_, '_>) -> Algorithm {
    let fields = AlgorithmFields {
        algorithm: section.read("algorithm", word),
        buckets: section.read("buckets", whole),
        edge: section.read("edge", word),
        entries: section.read("entries", whole),
    };
    if fields.algorithm.is_none() && section.node("algorithm").is_some() {
        return Algorithm::default(); // Already a mistake; it is unknown which parameters belong to it.
    }
    fields.parse().unwrap_or_else(|errors| {
        for (field, text) in errors {
            let at = section.node(field).map_or(Location::UNKNOWN, |node| node.referenced);
            section.mistake(at, &text);
        }
        Algorithm::default()
    })
}

/// Reads the overrides of `rule`: `{ alice: 600/1m, "ci-*": unlimited, mallory: blocked }`.
fn overrides(rule: &Rule, node: &Node, findings: &mut Findings) -> Overrides {
    let mut overrides = Overrides::default();
    let prefix = format!("rule `{}`: overrides: ", excerpt(rule.name()));
    let expected = ("keys", "{ alice: 600/1m }");
    let Some(mut section) = Section::open(prefix, node, expected, findings) else { return overrides };
    for (key, node) in section.fields {
        let added = override_of(rule, node).and_then(|key_override| {
            overrides.add(&key.value, key_override).map_err(|error| vec![(key.referenced, error.to_string())])
        });
        for (at, text) in added.err().into_iter().flatten() {
            section.mistake(at, &format!("`{}`: {text}", excerpt(&key.value)));
        }
    }
    overrides
}

/// Reads the override of a key, or returns all its mistakes.
fn override_of(rule: &Rule, node: &Node) -> Result<Override, Vec<(Location, String)>> {
    let wrong = |text: String| vec![(node.referenced, text)];
    let rates = match &node.value {
        YamlValue::Text(text) if text == "unlimited" => return Ok(Override::Unlimited),
        YamlValue::Text(text) if text == "blocked" => return Ok(Override::Blocked),
        YamlValue::Text(text) if nearest(text, OVERRIDE_WORDS.into_iter()).is_some() => {
            return Err(wrong(format!(
                "`{}` is unknown; {}",
                excerpt(text),
                did_you_mean(text, &OVERRIDE_WORDS)
            )));
        }
        YamlValue::Text(_) => {
            vec![rate(node).map_err(|text| wrong(format!("{text}; or write unlimited or blocked")))?]
        }
        YamlValue::List(items) => {
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
        other => return Err(wrong(format!("found {}; {OVERRIDE_FORMS}", other.kind()))),
    };
    rule.with_rates(&rates).map(Override::Limited).map_err(|error| {
        let text = error.to_string();
        let prefix = format!("rule `{}`: ", rule.name());
        wrong(text.strip_prefix(&prefix).unwrap_or(&text).to_owned())
    })
}
