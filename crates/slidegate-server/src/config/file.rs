//! What a configuration file means as a whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_saphyr::Spanned;
use slidegate::Rule;

use super::mistake::{ConfigError, Mistake};
use super::node::{Node, Value};
use super::{rule, scalar, yaml};
use crate::service::{Rules, StoreUrl, did_you_mean, shown};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What the fields at the top are called.
const FIELDS: [&str; 3] = ["rules", "store", "inline_rules"];
/// Fields that are promised, but that this version cannot keep.
const FIELDS_LATER: [&str; 1] = ["rate-limiter"];

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
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
        let root = yaml::parse(text).map_err(|mistake| ConfigError::new(file, vec![mistake]))?;
        let mut mistakes = Vec::new();
        let Root { rules, store, inline_rules } = read_root(&root, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(ConfigError::new(file, mistakes));
        }
        let rules: Rules = rules.into_iter().collect();
        let rules = if inline_rules { rules } else { rules.forbidding_inline(file) };
        Ok(Self { file: file.to_owned(), rules, store })
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
            let text = format!("{error}; or override it with --store memory");
            ConfigError::new(&self.file, vec![Mistake::at(store.referenced, &text)])
        })
    }
}

fn read(path: &Path) -> Result<String, Mistake> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    read.map_err(|error| Mistake::unreadable(&format!("cannot be read: {error}; check the path")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Mistake::at_start(&format!("has more than {FILE_BYTES_MAX} bytes; shorten it")));
    }
    // Without its byte order mark, so that columns are those of an editor.
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    match str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            Err(Mistake::after(&before, "is not UTF-8; save it as UTF-8"))
        }
    }
}

/// What stands at the top of a file.
#[derive(Default)]
struct Root {
    rules: Vec<Rule>,
    store: Option<Spanned<String>>,
    inline_rules: bool,
}

fn read_root(root: &Node, mistakes: &mut Vec<Mistake>) -> Root {
    let mut read = Root::default();
    let fields = match &root.value {
        Value::Map(fields) => fields,
        Value::Null => {
            mistakes.push(Mistake::at_start(&format!("is empty; {EXAMPLE}")));
            return read;
        }
        other => {
            let text = format!("expected a mapping with `rules`, found {}; {EXAMPLE}", other.kind());
            mistakes.push(Mistake::at(root.referenced, &text));
            return read;
        }
    };
    for (name, node) in fields {
        match name.value.as_str() {
            "rules" => read.rules = read_rules(node, mistakes),
            "store" => read.store = read_store(node, mistakes),
            "inline_rules" => match scalar::boolean(node) {
                Ok(allowed) => read.inline_rules = allowed,
                Err(text) => mistakes.push(Mistake::at(node.referenced, &format!("inline_rules: {text}"))),
            },
            later if FIELDS_LATER.contains(&later) => {
                let text = format!("{later}: is not supported by this version; remove it");
                mistakes.push(Mistake::at(name.referenced, &text));
            }
            other => {
                let text = format!("{}: is not a field; {}", shown(other), did_you_mean(other, &FIELDS));
                mistakes.push(Mistake::at(name.referenced, &text));
            }
        }
    }
    if !fields.iter().any(|(name, _)| name.value == "rules") {
        mistakes.push(Mistake::at_start(&format!("rules: is missing; {EXAMPLE}")));
    }
    read
}

fn read_rules(node: &Node, mistakes: &mut Vec<Mistake>) -> Vec<Rule> {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            entries.iter().filter_map(|(name, node)| rule::read(name, node, mistakes)).collect()
        }
        other => {
            let found = if matches!(other, Value::Map(_)) { "none".to_owned() } else { other.kind() };
            let text = format!("rules: expected rules by name, found {found}; {EXAMPLE}");
            mistakes.push(Mistake::at(node.referenced, &text));
            Vec::new()
        }
    }
}

fn read_store(node: &Node, mistakes: &mut Vec<Mistake>) -> Option<Spanned<String>> {
    if let Value::Text(text) = &node.value {
        return Some(Spanned::new(text.clone(), node.referenced, node.defined));
    }
    let text = format!("store: expected a text, found {}; write `store: memory`", node.value.kind());
    mistakes.push(Mistake::at(node.referenced, &text));
    None
}
