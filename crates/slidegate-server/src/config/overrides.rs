//! The overrides of a rule: `{ alice: 600/1m, "ci-*": unlimited, mallory: blocked }`.

use slidegate::ruleset::{Override, Overrides};
use slidegate::{Rate, Rule};

use super::mistake::Mistake;
use super::node::{Node, Value};
use super::rule::rate;
use crate::text::{did_you_mean, nearest, shown};

const MEANINGS: &str = "write a rate such as 600/1m, a list of rates, unlimited or blocked";
const WORDS: [&str; 2] = ["unlimited", "blocked"];

/// Reads the overrides of `rule`; what is wrong goes to `mistakes`.
pub(super) fn read(rule: &Rule, node: &Node, mistakes: &mut Vec<Mistake>) -> Overrides {
    let mut overrides = Overrides::default();
    let rule_name = shown(rule.name());
    let Value::Map(entries) = &node.value else {
        let found = node.value.kind();
        let text =
            format!("rule `{rule_name}`: overrides: expected keys, found {found}; write {{ alice: 600/1m }}");
        mistakes.push(Mistake::at(node.referenced, &text));
        return overrides;
    };
    for (key, node) in entries {
        let named = |text: &str| format!("rule `{rule_name}`: overrides: `{}`: {text}", shown(&key.value));
        match meaning(rule, node) {
            Ok(meant) => {
                if let Err(error) = overrides.add(&key.value, meant) {
                    mistakes.push(Mistake::at(key.referenced, &named(&error.to_string())));
                }
            }
            Err(wrong) => {
                mistakes.extend(wrong.iter().map(|(at, text)| Mistake::at(at.referenced, &named(text))));
            }
        }
    }
    overrides
}

/// What stands at a key, or everything that is wrong with it.
fn meaning<'a>(rule: &Rule, node: &'a Node) -> Result<Override, Vec<(&'a Node, String)>> {
    let rates = match &node.value {
        Value::Text(text) if text == "unlimited" => return Ok(Override::Unlimited),
        Value::Text(text) if text == "blocked" => return Ok(Override::Blocked),
        Value::Text(text) if nearest(text, WORDS.into_iter()).is_some() => {
            return Err(vec![(
                node,
                format!("`{}` is unknown; {}", shown(text), did_you_mean(text, &WORDS)),
            )]);
        }
        Value::List(items) => items.iter().collect(),
        Value::Text(_) => vec![node],
        other => return Err(vec![(node, format!("found {}; {MEANINGS}", other.kind()))]),
    };
    let mut good: Vec<Rate> = Vec::new();
    let mut wrong = Vec::new();
    for item in rates {
        match rate(item) {
            Ok(rate) => good.push(rate),
            Err(text) if matches!(node.value, Value::List(_)) => wrong.push((item, text)),
            Err(text) => wrong.push((item, format!("{text}; or write unlimited or blocked"))),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    rule.with_rates(&good).map(Override::Limited).map_err(|error| {
        let text = error.to_string();
        let prefix = format!("rule `{}`: ", rule.name());
        vec![(node, text.strip_prefix(&prefix).unwrap_or(&text).to_owned())]
    })
}
