//! What a configuration file means as a whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_saphyr::Spanned;
use slidegate::Rule;

use super::mistake::{ConfigError, Mistake};
use super::node::{self, Node, Value};
use super::rule;
use crate::service::{Rules, StoreUrl, did_you_mean};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What the fields at the top are called.
const FIELDS: [&str; 2] = ["rules", "store"];
/// Fields that are promised, but that this version cannot keep.
const FIELDS_LATER: [&str; 2] = ["inline_rules", "rate-limiter"];

const EXAMPLE: &str = "write for example `rules: { api: { limit: 60/1m } }`";

/// A configuration that holds no mistake.
#[derive(Debug)]
pub(crate) struct Config {
    file: String,
    rules: Rules,
    store: Option<Spanned<String>>,
}

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = read(path).map_err(|mistake| ConfigError::new(&file, vec![mistake]))?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let root = node::parse(text).map_err(|mistake| ConfigError::new(file, vec![mistake]))?;
        let mut mistakes = Vec::new();
        let (rules, store) = read_root(&root, &mut mistakes);
        if mistakes.is_empty() {
            Ok(Self { file: file.to_owned(), rules: rules.into_iter().collect(), store })
        } else {
            Err(ConfigError::new(file, mistakes))
        }
    }

    /// The rules.
    pub(crate) fn into_rules(self) -> Rules {
        self.rules
    }

    /// The store that the file names; memory if it names none.
    pub(crate) fn store(&self) -> Result<StoreUrl, ConfigError> {
        let Some(store) = &self.store else {
            return Ok(StoreUrl::default());
        };
        store.value.parse().map_err(|error| {
            let text = format!("{error}; write `store: memory`, or override it with --store memory");
            ConfigError::new(&self.file, vec![Mistake::at(store.referenced, text)])
        })
    }
}

fn read(path: &Path) -> Result<String, Mistake> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| Mistake::of_file(format!("cannot be read: {error}; check the path")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Mistake::of_file(format!("has more than {FILE_BYTES_MAX} bytes; shorten it")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Mistake::of_file(format!("is not UTF-8 at byte {offset}; save it as UTF-8"))
    })
}

fn read_root(root: &Node, mistakes: &mut Vec<Mistake>) -> (Vec<Rule>, Option<Spanned<String>>) {
    let fields = match &root.value {
        Value::Map(fields) => fields,
        Value::Null => {
            mistakes.push(Mistake::of_file(format!("is empty; {EXAMPLE}")));
            return (Vec::new(), None);
        }
        other => {
            let text = format!("expected a mapping with `rules`, found {}; {EXAMPLE}", other.kind());
            mistakes.push(Mistake::at(root.referenced, text));
            return (Vec::new(), None);
        }
    };
    let (mut rules, mut store) = (Vec::new(), None);
    for (name, node) in fields {
        match name.value.as_str() {
            "rules" => rules = read_rules(node, mistakes),
            "store" => store = read_store(node, mistakes),
            later if FIELDS_LATER.contains(&later) => {
                let text = format!("{later}: is not supported by this version; remove it");
                mistakes.push(Mistake::at(name.referenced, text));
            }
            other => {
                let text = format!("{other}: is not a field; {}", did_you_mean(other, FIELDS));
                mistakes.push(Mistake::at(name.referenced, text));
            }
        }
    }
    if !fields.iter().any(|(name, _)| name.value == "rules") {
        mistakes.push(Mistake::of_file(format!("rules: is missing; {EXAMPLE}")));
    }
    (rules, store)
}

fn read_rules(node: &Node, mistakes: &mut Vec<Mistake>) -> Vec<Rule> {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            entries.iter().filter_map(|(name, node)| rule::read(name, node, mistakes)).collect()
        }
        other => {
            let found = if matches!(other, Value::Map(_)) { "none".to_owned() } else { other.kind() };
            let text = format!("rules: expected rules by name, found {found}; {EXAMPLE}");
            mistakes.push(Mistake::at(node.referenced, text));
            Vec::new()
        }
    }
}

fn read_store(node: &Node, mistakes: &mut Vec<Mistake>) -> Option<Spanned<String>> {
    if let Value::Text(text) = &node.value {
        return Some(Spanned::new(text.clone(), node.referenced, node.defined));
    }
    let text = format!("store: expected a text, found {}; write `store: memory`", node.value.kind());
    mistakes.push(Mistake::at(node.referenced, text));
    None
}
