//! The settings of a configuration file: everything at its top but the rules.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;

use super::layer::Layer;
use super::mistake::{Mistake, Source, place};
use super::node::{Node, Value};
use super::setting::{self, LISTS, SETTINGS};
use crate::text::{did_you_mean, shown};

/// What a file says of settings.
#[derive(Debug, Clone, Default)]
pub(super) struct FileSettings {
    pub(super) layer: Layer,
    /// The texts of each, so that a later reading can tell which were changed.
    pub(super) written: BTreeMap<&'static str, Vec<String>>,
}

impl FileSettings {
    /// Reads the field of that name if it is a setting; says whether it is.
    pub(super) fn read(&mut self, file: &str, name: &str, node: &Node, mistakes: &mut Vec<Mistake>) -> bool {
        if name == "bounds" {
            self.read_bounds(file, node, mistakes);
            return true;
        }
        let Some(setting) = SETTINGS.iter().find(|setting| **setting == name) else { return false };
        self.read_one(file, setting, node, mistakes);
        true
    }

    fn read_bounds(&mut self, file: &str, node: &Node, mistakes: &mut Vec<Mistake>) {
        let Value::Map(fields) = &node.value else {
            let text = format!(
                "bounds: expected fields, found {}; write {{ connections: 1000 }}",
                node.value.kind()
            );
            mistakes.push(Mistake::at(node.referenced, &text));
            return;
        };
        for (name, node) in fields {
            let Some(setting) =
                SETTINGS.iter().find(|setting| setting.strip_prefix("bounds.") == Some(&name.value))
            else {
                mistakes.push(unknown_bound(name));
                continue;
            };
            self.read_one(file, setting, node, mistakes);
        }
    }

    fn read_one(&mut self, file: &str, setting: &'static str, node: &Node, mistakes: &mut Vec<Mistake>) {
        let mut wrong = |at: &Node, text: &str| {
            mistakes.push(Mistake::at(at.referenced, &format!("{setting}: {text}")));
        };
        let items = match &node.value {
            Value::List(items) if LISTS.contains(&setting) => items.iter().collect(),
            _ => vec![node],
        };
        let mut texts = Vec::new();
        for item in &items {
            match text(item) {
                Some(text) => texts.push(text),
                None => wrong(
                    item,
                    &format!("expected a text, found {}; {}", item.value.kind(), example(setting)),
                ),
            }
        }
        if texts.len() < items.len() {
            return;
        }
        let source = Source::File(file.to_owned(), Some(place(node.referenced)));
        match setting::set(&mut self.layer, setting, &texts, &source) {
            Ok(()) => drop(self.written.insert(setting, texts)),
            Err((index, text)) => wrong(items.get(index).copied().unwrap_or(node), &text),
        }
    }
}

fn unknown_bound(name: &Spanned<String>) -> Mistake {
    let known: Vec<&str> = SETTINGS.iter().filter_map(|setting| setting.strip_prefix("bounds.")).collect();
    let remedy = did_you_mean(&name.value, &known);
    Mistake::at(name.referenced, &format!("bounds: {}: is not a field here; {remedy}", shown(&name.value)))
}

/// The text of a value without parts.
fn text(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Whole(number) => Some(number.to_string()),
        Value::Number(number) => Some(number.decimal.clone()),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

fn example(setting: &str) -> &'static str {
    match setting {
        "http" => "write `http: 127.0.0.1:8080`",
        "store" => "write `store: memory`",
        "deadline" => "write `deadline: 50ms`",
        "memory_budget" => "write `memory_budget: 512MiB`",
        "token_file" => "write `token_file: PATH`",
        "hosts" => "write `hosts: [slidegate.internal]`",
        "headers" => "write `headers: [draft-11]`",
        "inline_rules" => "write true or false",
        "bounds.body_bytes" | "bounds.header_bytes" => "write an amount such as 64KiB",
        "threads" | "bounds.connections" => "write a whole number",
        _ => "write a duration such as 10s",
    }
}
