//! Parses the text of a file into nodes: the limits of the parser, and its errors in terms of the file.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{NonFiniteFloatPolicy, Options};
use serde_saphyr::{Error, Location};

use super::node::{self, Node};

/// Most values of a file, with names and expanded aliases: a rule with its limit has four.
const VALUES_MAX: usize = 250_000;
/// Deepest nesting.
const DEPTH_MAX: usize = 64;
/// Most aliases (`*name`).
const ALIASES_MAX: usize = 50_000;
/// Most anchors (`&name`).
const ANCHORS_MAX: usize = 50_000;
/// Most merge keys (`<<`).
const MERGES_MAX: usize = 50_000;

/// Parses the text of a file, or returns the position and the error.
pub(super) fn parse(text: &str) -> Result<Node, (Location, String)> {
    let mut root: Node = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| (error.location().unwrap_or(Location::UNKNOWN), message(&error)))?;
    node::keep_numbers_as_written(&mut root, text);
    Ok(root)
}

fn options() -> Options {
    // `yes` and `on` are texts, as in YAML 1.2, and so is `.nan`. One anchor may serve any number of rules: expanded
    // aliases count as values, so the ratio of aliases to anchors needs no bound.
    serde_saphyr::options! {
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: VALUES_MAX,
            max_depth: DEPTH_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ANCHORS_MAX,
            max_merge_keys: MERGES_MAX,
            enforce_alias_anchor_ratio: false,
        },
    }
}

/// The parser's error, reworded where it speaks of its own API.
fn message(error: &Error) -> String {
    match error {
        Error::AliasError { error, .. } => message(error),
        Error::Budget { breach, .. } => beyond(breach),
        Error::DuplicateMappingKey { key, .. } => {
            format!("{}: is given twice; keep one of them", key.as_deref().unwrap_or("a key"))
        }
        Error::MultipleDocuments { .. } => "a second document begins; keep one document per file".to_owned(),
        Error::NullIntoString { .. } => "a name is missing before the colon; write one".to_owned(),
        _ => {
            let text = error.to_string();
            let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            let text = place.and_then(|place| text.strip_suffix(place.as_str())).unwrap_or(&text);
            format!("is not YAML: {text}; correct the syntax here or just before")
        }
    }
}

/// The error for a limit of the parser that the file exceeds.
fn beyond(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Nodes { .. } => {
            format!("has more than {VALUES_MAX} values; split the file or remove rules")
        }
        BudgetBreach::Depth { .. } => {
            format!("is nested more than {DEPTH_MAX} deep; a rule needs 4 levels, remove the others")
        }
        BudgetBreach::Aliases { .. } => {
            format!("has more than {ALIASES_MAX} aliases; write some of the values out or remove rules")
        }
        BudgetBreach::Anchors { .. } => {
            format!("has more than {ANCHORS_MAX} anchors; remove those that no alias uses")
        }
        BudgetBreach::MergeKeys { .. } => {
            format!("has more than {MERGES_MAX} merges (`<<`); write some of the fields out or remove rules")
        }
        _ => "is larger than a configuration may be; split the file or remove rules".to_owned(),
    }
}
