//! The overrides of a rule: `{ alice: 600/1m, "ci-*": unlimited, mallory: blocked }`.

use serde_saphyr::Location;
use slidegate::Rule;
use slidegate::ruleset::{Override, Overrides};

use super::mistake::Findings;
use super::node::{Node, Value};
use super::section::Section;
use super::values::rate;
use crate::text::{did_you_mean, nearest, shown};

const MEANINGS: &str = "write a rate such as 600/1m, a list of rates, unlimited or blocked";
const WORDS: [&str; 2] = ["unlimited", "blocked"];

/// Reads the overrides of `rule`.
pub(super) fn read(rule: &Rule, node: &Node, found: &mut Findings) -> Overrides {
    let mut overrides = Overrides::default();
    let prefix = format!("rule `{}`: overrides: ", shown(rule.name()));
    let expected = ("keys", "{ alice: 600/1m }");
    let Some(mut section) = Section::open(prefix, node, expected, found) else { return overrides };
    for (key, node) in section.fields {
        let added = meaning(rule, node).and_then(|meant| {
            overrides.add(&key.value, meant).map_err(|error| vec![(key.referenced, error.to_string())])
        });
        for (at, text) in added.err().into_iter().flatten() {
            section.mistake(at, &format!("`{}`: {text}", shown(&key.value)));
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
            return Err(wrong(format!("`{}` is unknown; {}", shown(text), did_you_mean(text, &WORDS))));
        }
        Value::Text(_) => {
            let text = |text| wrong(format!("{text}; or write unlimited or blocked"));
            vec![rate(node).map_err(text)?]
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
