//! What a configuration file means as a whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{SHA256, digest};
use slidegate::RuleSet;
use slidegate::ruleset::Overrides;

use super::layer::Layer;
use super::mistake::{ConfigError, Found, Mistake};
use super::node::{Node, Value};
use super::rule::{self, FileRule};
use super::setting::SETTINGS;
use super::settings::FileSettings;
use super::{small, warning, yaml};
use crate::service::Settings;
use crate::text::{did_you_mean, shown};
use slidegate_stores::StoreUrl;

/// Bytes of a hash that are shown.
const HASH_BYTES: usize = 8;
/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Fields that are promised, but that this version cannot keep.
const FIELDS_LATER: [&str; 2] = ["grpc", "resp"];

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const EXAMPLE: &str = "write for example `rules: { api: { limit: 60/1m } }`";
const TOKEN: &str = "token: does not belong here, where many may read it; write it to a file of its own and name that: \
                     token_file: PATH";

/// A configuration that holds no mistake.
#[derive(Debug)]
pub(crate) struct Config {
    file: String,
    /// What it was read from, so that a later reading can tell whether anything was changed.
    text: String,
    rules: Vec<FileRule>,
    settings: FileSettings,
}

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = Self::read(path)?;
        Self::parse(&file, &text)
    }

    /// The text of a file.
    pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
        read(path).map_err(|mistake| ConfigError::new(&path.display().to_string(), vec![mistake]))
    }

    /// Reads the text of a file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let root = yaml::parse(text).map_err(|mistake| ConfigError::new(file, vec![mistake]))?;
        let mut mistakes = Vec::new();
        let mut config = read_root(file, &root, &mut mistakes);
        text.clone_into(&mut config.text);
        if mistakes.is_empty() { Ok(config) } else { Err(ConfigError::new(file, mistakes)) }
    }

    /// The rules.
    pub(crate) fn into_rules(self) -> RuleSet {
        self.rules()
    }

    /// A copy of the rules, with their overrides.
    pub(crate) fn rules(&self) -> RuleSet {
        self.rules_under(&self.settings.layer)
    }

    /// The same, where `layer` says whether requests may bring rules of their own.
    pub(crate) fn rules_under(&self, layer: &Layer) -> RuleSet {
        let mut rules = RuleSet::new();
        for FileRule { rule, overrides, .. } in &self.rules {
            rules.insert_with(rule.clone(), overrides.clone());
        }
        let inline = layer.inline_rules.as_ref().is_some_and(|given| given.value);
        if !inline {
            rules.forbid_inline(&self.file);
        }
        rules
    }

    /// What it says of settings.
    pub(crate) fn layer(&self) -> Layer {
        self.settings.layer.clone()
    }

    /// What it was read from.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What it is known by: other text, another hash.
    pub(crate) fn hash(&self) -> String {
        let digest = digest(&SHA256, self.text.as_bytes());
        let number =
            digest.as_ref()[..HASH_BYTES].iter().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        format!("{number:016x}")
    }

    /// The store that the file names; memory if it names none.
    pub(crate) fn store(&self) -> StoreUrl {
        self.store_named().unwrap_or_default()
    }

    /// The store that the file names.
    pub(crate) fn store_named(&self) -> Option<StoreUrl> {
        self.settings.layer.store.as_ref().map(|given| given.value.clone())
    }

    /// What is legal but unwise, given the settings that are in force in the end.
    pub(crate) fn warnings(&self, layer: &Layer, settings: &Settings) -> Vec<Found> {
        warning::find(&self.file, &self.rules, layer, settings)
    }

    /// Settings that differ from those of `before` and cannot change while the server runs.
    pub(crate) fn changed_settings(&self, before: &Self) -> Vec<&'static str> {
        let (now, then) = (&self.settings, &before.settings);
        let token = |layer: &Layer| layer.token.as_ref().map(|given| given.value.clone());
        let differs = |name: &str| match name {
            // Rules carry it, so it changes with them.
            "inline_rules" => false,
            "token_file" => {
                now.written.get(name) != then.written.get(name) || token(&now.layer) != token(&then.layer)
            }
            name => now.written.get(name) != then.written.get(name),
        };
        SETTINGS.into_iter().filter(|name| differs(name)).collect()
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

fn read_root(file: &str, root: &Node, mistakes: &mut Vec<Mistake>) -> Config {
    let mut read = Config {
        file: file.to_owned(),
        text: String::new(),
        rules: Vec::new(),
        settings: FileSettings::default(),
    };
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
            "rules" => read.rules.append(&mut read_rules(node, mistakes)),
            "rate-limiter" => {
                let found = small::read(name, node, mistakes);
                let at = name.referenced;
                let rule = found.map(|rule| FileRule {
                    rule,
                    overrides: Overrides::default(),
                    at,
                    has_policy: false,
                });
                read.rules.extend(rule);
            }
            "token" => mistakes.push(Mistake::at(name.referenced, TOKEN)),
            later if FIELDS_LATER.contains(&later) => {
                let text = format!("{later}: is not supported by this version; remove it");
                mistakes.push(Mistake::at(name.referenced, &text));
            }
            other => {
                if !read.settings.read(file, other, node, mistakes) {
                    let text =
                        format!("{}: is not a field; {}", shown(other), did_you_mean(other, &fields_known()));
                    mistakes.push(Mistake::at(name.referenced, &text));
                }
            }
        }
    }
    let has = |field: &str| fields.iter().find(|(name, _)| name.value == field);
    match (has("rules"), has("rate-limiter")) {
        (None, None) => mistakes.push(Mistake::at_start(&format!("rules: is missing; {EXAMPLE}"))),
        (Some((_, rules)), Some((name, _))) => {
            let twice = matches!(&rules.value, Value::Map(rules) if rules.iter().any(|(name, _)| name.value == small::DEFAULT_RULE));
            if twice {
                let text = "rate-limiter: means rule `default`, which `rules` has as well; keep one of them";
                mistakes.push(Mistake::at(name.referenced, text));
            }
        }
        _ => {}
    }
    read
}

/// What the fields at the top are called.
pub(super) fn fields_known() -> Vec<&'static str> {
    let settings = SETTINGS.into_iter().filter(|setting| !setting.contains('.'));
    ["rules", "rate-limiter"].into_iter().chain(settings).chain(["bounds"]).collect()
}

fn read_rules(node: &Node, mistakes: &mut Vec<Mistake>) -> Vec<FileRule> {
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
