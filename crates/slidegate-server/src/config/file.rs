//! What a configuration file means as a whole.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde_saphyr::{Location, Spanned};
use slidegate::RuleSet;
use slidegate::ruleset::Overrides;
use slidegate_stores::StoreUrl;

use super::mistake::{ConfigError, Findings, Found, Source};
use super::node::{Node, Value};
use super::rule::{self, FileRule};
use super::section::{LATER, Section};
use super::setting::{Given, LISTS, SETTINGS};
use super::{small, warning, yaml};
use crate::service::Settings;
use crate::text::escaped;

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const EXAMPLE: &str = "for example `rules: { api: { limit: 60/1m } }`";
const TOKEN: &str = "does not belong here, where many may read it; write it to a file of its own and name that: \
                     token_file: PATH";

/// A configuration that holds no mistake.
pub(crate) struct Config {
    file: String,
    /// What it was read from, so that a later reading can tell whether anything was changed.
    pub(crate) text: String,
    rules: Vec<FileRule>,
    /// What it says over the defaults.
    pub(crate) settings: Settings,
    given: Given,
}

/// Without the text, which may hold a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("file", &self.file).field("given", &self.given).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&path.display().to_string(), &Self::read(path)?)
    }

    /// The text of a file.
    pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
        let wrong = |place, text: &str| {
            let source = Source::File(escaped(&path.display().to_string()), place);
            ConfigError { mistakes: vec![Found::new(source, text)] }
        };
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| wrong(None, &format!("cannot be read: {error}; check the path")))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(wrong(Some((1, 1)), &format!("has more than {FILE_BYTES_MAX} bytes; shorten it")));
        }
        // Without its byte order mark, so that columns are those of an editor.
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let line = before.rsplit('\n').next().unwrap_or_default();
            let place = (before.matches('\n').count() as u64 + 1, line.chars().count() as u64 + 1);
            wrong(Some(place), "is not UTF-8; save it as UTF-8")
        })?;
        Ok(text.to_owned())
    }

    /// Reads the text of a file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut config = Self {
            file: file.to_owned(),
            text: text.to_owned(),
            rules: Vec::new(),
            settings: Settings::default(),
            given: Given::default(),
        };
        let mut found = Findings::of(file);
        match yaml::parse(text) {
            Ok(Node { value: Value::Null, .. }) => {
                found.add(Location::UNKNOWN, &format!("is empty; write {EXAMPLE}"));
            }
            Ok(root) => config.read_root(&root, &mut found),
            Err((at, text)) => found.add(at, &text),
        }
        found.into_result(config)
    }

    /// The rules, with their overrides.
    pub(crate) fn into_rules(self) -> RuleSet {
        self.rules(&Given::default())
    }

    /// A copy of the rules. `over` goes over what the file says of rules that requests bring along.
    pub(crate) fn rules(&self, over: &Given) -> RuleSet {
        let mut rules = RuleSet::new();
        for FileRule { rule, overrides, .. } in &self.rules {
            rules.insert_with(rule.clone(), overrides.clone());
        }
        if over.inline_rules().or(self.given.inline_rules()) != Some(true) {
            rules.forbid_inline(&self.file);
        }
        rules
    }

    /// What it is known by: other text, another hash.
    pub(crate) fn hash(&self) -> String {
        let digest = digest(&SHA256, self.text.as_bytes());
        let prefix = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        format!("{prefix:016x}")
    }

    /// The store that the file names.
    pub(crate) fn store(&self) -> Option<StoreUrl> {
        self.given.source("store").map(|_| self.settings.store.clone())
    }

    /// What is legal but unwise, given what goes over the file and the settings that are in force in the end.
    pub(crate) fn warnings(&self, over: &Given, settings: &Settings) -> Vec<Found> {
        warning::find(&self.file, &self.rules, &over.over(&self.given), settings)
    }

    /// Settings that differ from those of `before` and cannot change while the server runs.
    pub(crate) fn changed_settings(&self, before: &Self) -> Vec<&'static str> {
        let differs = |name: &str| match name {
            // Rules carry it, so it changes with them.
            "inline_rules" => false,
            "token_file" if self.settings.token != before.settings.token => true,
            _ => self.given.texts(name) != before.given.texts(name),
        };
        SETTINGS.iter().map(|(name, _)| *name).filter(|name| differs(name)).collect()
    }

    fn read_root(&mut self, root: &Node, found: &mut Findings) {
        let expected = ("a mapping with `rules`", EXAMPLE);
        let Some(mut root) = Section::open(String::new(), root, expected, found) else { return };
        for (name, node) in root.fields {
            match name.value.as_str() {
                "rules" => self.read_rules(node, root.found),
                "rate-limiter" => {
                    let rule = small::read(name, node, root.found);
                    let (overrides, at) = (Overrides::default(), name.referenced);
                    self.rules.extend(rule.map(|rule| FileRule { rule, overrides, at, has_policy: false }));
                    let is_default = |(name, _): &(Spanned<String>, Node)| name.value == small::DEFAULT_RULE;
                    let rules = root.node("rules").map(|node| &node.value);
                    if matches!(rules, Some(Value::Map(rules)) if rules.iter().any(is_default)) {
                        let text =
                            "rate-limiter: means rule `default`, which `rules` has as well; keep one of them";
                        root.mistake(at, text);
                    }
                }
                "bounds" => self.read_bounds(node, root.found),
                other if self.read_setting(other, node, root.found) => {}
                _ => {
                    let refused = [("token", TOKEN), ("grpc", LATER), ("resp", LATER)];
                    root.check_name(name, &fields_known(), &refused, "is not a field");
                }
            }
        }
        if root.node("rules").or(root.node("rate-limiter")).is_none() {
            root.mistake(Location::UNKNOWN, &format!("rules: is missing; write {EXAMPLE}"));
        }
    }

    fn read_rules(&mut self, node: &Node, found: &mut Findings) {
        let expected = ("rules by name", EXAMPLE);
        let Some(mut section) = Section::open("rules: ".to_owned(), node, expected, found) else { return };
        if section.fields.is_empty() {
            section.mistake(node.referenced, &format!("expected rules by name, found none; write {EXAMPLE}"));
        }
        let rules = section.fields.iter();
        self.rules.extend(rules.filter_map(|(name, node)| rule::read(name, node, section.found)));
    }

    fn read_bounds(&mut self, node: &Node, found: &mut Findings) {
        let expected = ("fields", "{ connections: 1000 }");
        let Some(mut section) = Section::open("bounds: ".to_owned(), node, expected, found) else { return };
        for (name, node) in section.fields {
            if !self.read_setting(&format!("bounds.{}", name.value), node, section.found) {
                let known: Vec<_> =
                    SETTINGS.iter().filter_map(|(name, _)| name.strip_prefix("bounds.")).collect();
                section.check_name(name, &known, &[], "is not a field here");
            }
        }
    }

    /// Reads the setting of that name; says whether there is one.
    fn read_setting(&mut self, name: &str, node: &Node, found: &mut Findings) -> bool {
        let Some((name, example)) = SETTINGS.iter().find(|(setting, _)| *setting == name) else {
            return false;
        };
        let items = match &node.value {
            Value::List(items) if LISTS.contains(name) => items.iter().collect(),
            _ => vec![node],
        };
        let mut texts = Vec::new();
        for item in &items {
            if let Some(text) = item.value.text() {
                texts.push(text);
            } else {
                let text = format!("{name}: expected a text, found {}; {example}", item.value.kind());
                found.add(item.referenced, &text);
            }
        }
        if texts.len() == items.len() {
            let source = found.source(node.referenced);
            if let Err((index, text)) = self.given.set(&mut self.settings, name, texts, &source) {
                found.add(items.get(index).unwrap_or(&node).referenced, &format!("{name}: {text}"));
            }
        }
        true
    }
}

/// What the fields at the top are called.
fn fields_known() -> Vec<&'static str> {
    let settings = SETTINGS.iter().map(|(name, _)| *name).filter(|name| !name.contains('.'));
    ["rules", "rate-limiter"].into_iter().chain(settings).chain(["bounds"]).collect()
}
