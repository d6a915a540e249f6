//! Reads a configuration file as a whole.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{SHA256, digest};
use serde_saphyr::{Location, Spanned};
use slidegate::RuleSet;
use slidegate_stores::StoreUrl;

use super::finding::{ConfigError, Finding, Findings, Source};
use super::node::{Node, YamlValue};
use super::rule::{self, FileRule};
use super::section::{Section, UNSUPPORTED};
use super::setting::{GivenSettings, LISTS, SETTINGS};
use super::{rate_limiter_form, store_checks, token, warning, yaml};
use crate::service::Settings;
use crate::text::{BYTE_ORDER_MARK, escaped};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Named like a parameter of the URL, but a setting of its own.
const DEADLINE: (&str, &str) =
    ("deadline", "stands beside `store`, for every store; write `deadline: 20ms` there");

const EXAMPLE: &str = "for example `rules: { api: { limit: 60/1m } }`";
const TOKEN: &str = "is a secret and does not belong in this file; list its hash in `tokens`, or write it to a file of \
                     its own and name that file: token_file: PATH";

/// Groups of settings: name and example.
const BOUNDS: (&str, &str) = ("bounds", "{ connections: 1000 }");
const STORE: (&str, &str) = ("store", "{ url: redis://localhost, key_prefix: app }");
const TLS: (&str, &str) = ("tls", "{ certificate: server.pem, key: server.key }");

/// A valid configuration.
pub(crate) struct Config {
    file: String,
    /// The text of the file, to detect changes.
    pub(crate) text: String,
    rules: Vec<FileRule>,
    /// The defaults, overridden by the settings of the file.
    pub(crate) settings: Settings,
    pub(super) given: GivenSettings,
}

/// Leaves out the text, which may contain a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("file", &self.file).field("given", &self.given).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads and parses a file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(&path.display().to_string(), &Self::read(path)?)
    }

    /// Reads the text of a file.
    pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
        let wrong = |position, text: &str| {
            let source = Source::File(escaped(&path.display().to_string()), position);
            ConfigError { mistakes: vec![Finding::new(source, text)] }
        };
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| wrong(None, &format!("cannot be read: {error}; check the path")))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(wrong(Some((1, 1)), &format!("has more than {FILE_BYTES_MAX} bytes; shorten it")));
        }
        // Without the byte order mark, columns match those of an editor.
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        let text = str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let line = before.rsplit('\n').next().unwrap_or_default();
            let position = (before.matches('\n').count() as u64 + 1, line.chars().count() as u64 + 1);
            wrong(Some(position), "is not UTF-8; save it as UTF-8")
        })?;
        Ok(text.to_owned())
    }

    /// Parses the text of a file.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let mut config = Self {
            file: file.to_owned(),
            text: text.to_owned(),
            rules: Vec::new(),
            settings: Settings::default(),
            given: GivenSettings::default(),
        };
        let mut findings = Findings::of(file);
        match yaml::parse(text) {
            Ok(Node { value: YamlValue::Null, .. }) => {
                findings.add(Location::UNKNOWN, &format!("is empty; write {EXAMPLE}"));
            }
            Ok(root) => config.read_root(&root, &mut findings),
            Err((at, text)) => findings.add(at, &text),
        }
        findings.into_result(config)
    }

    /// The rules, with their overrides.
    pub(crate) fn into_rules(self) -> RuleSet {
        self.rules(&GivenSettings::default())
    }

    /// A copy of the rules. `flags_and_env` takes precedence over the file's `inline_rules`.
    pub(crate) fn rules(&self, flags_and_env: &GivenSettings) -> RuleSet {
        let mut rules = RuleSet::new();
        for FileRule { rule, overrides, .. } in &self.rules {
            rules.insert_with(rule.clone(), overrides.clone());
        }
        if flags_and_env.inline_rules().or(self.given.inline_rules()) != Some(true) {
            rules.forbid_inline(&self.file);
        }
        rules
    }

    /// A hash of the text.
    pub(crate) fn hash(&self) -> String {
        let digest = digest(&SHA256, self.text.as_bytes());
        let prefix = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        format!("{prefix:016x}")
    }

    /// Finds the mistakes of the rules and the final settings together.
    pub(crate) fn check_together(
        &self,
        flags_and_env: &GivenSettings,
        settings: &Settings,
    ) -> Result<(), ConfigError> {
        let given = flags_and_env.layered_over(&self.given);
        store_checks::check(&self.rules(flags_and_env), &given, settings)
    }

    /// The store that the file names.
    pub(crate) fn store(&self) -> Option<StoreUrl> {
        self.given.source("store").map(|_| self.settings.store.clone())
    }

    /// Warnings about the rules of the file and the final settings.
    pub(crate) fn warnings(&self, flags_and_env: &GivenSettings, settings: &Settings) -> Vec<Finding> {
        warning::find(&self.file, &self.rules, &flags_and_env.layered_over(&self.given), settings)
    }

    /// A mistake in the value of a setting that this file gives.
    pub(crate) fn mistake(&self, setting: &str, text: &str) -> ConfigError {
        let source = self.given.source(setting).unwrap_or_else(|| Source::File(escaped(&self.file), None));
        ConfigError { mistakes: vec![Finding::new(source, text)] }
    }

    /// Settings that differ from those of `before` and need a restart.
    pub(crate) fn changed_settings(&self, before: &Self) -> Vec<&'static str> {
        let differs = |name: &str| match name {
            // These change without a restart, with the rules and the tokens.
            "inline_rules" | "token_file" => false,
            "hash_keys_secret_file" if self.settings.hash_keys_secret != before.settings.hash_keys_secret => {
                true
            }
            _ => self.given.texts(name) != before.given.texts(name),
        };
        SETTINGS.iter().map(|(name, _)| *name).filter(|name| differs(name)).collect()
    }

    /// The settings after a reload: those of the start, with the tokens of this file. `flags_and_env` takes precedence.
    pub(crate) fn settings_in_force(&self, flags_and_env: &GivenSettings, started: &Settings) -> Settings {
        let mut settings = started.clone();
        settings.tokens.clone_from(&self.settings.tokens);
        if flags_and_env.source("token_file").is_none() {
            settings.token.clone_from(&self.settings.token);
        }
        settings
    }

    fn read_root(&mut self, root: &Node, findings: &mut Findings) {
        let expected = ("a mapping with `rules`", EXAMPLE);
        let Some(mut root) = Section::open(String::new(), root, expected, findings) else { return };
        for (name, node) in root.fields {
            match name.value.as_str() {
                "rules" => self.read_rules(node, root.findings),
                "rate-limiter" => {
                    let rule = rate_limiter_form::read(name, node, root.findings);
                    self.rules.extend(rule);
                    let is_default =
                        |(name, _): &(Spanned<String>, Node)| name.value == rate_limiter_form::DEFAULT_RULE;
                    let rules = root.node("rules").map(|node| &node.value);
                    if matches!(rules, Some(YamlValue::Map(rules)) if rules.iter().any(is_default)) {
                        let text =
                            "rate-limiter: means rule `default`, which `rules` has as well; keep one of them";
                        root.mistake(name.referenced, text);
                    }
                }
                "bounds" => self.read_group(BOUNDS, node, root.findings),
                "store" if matches!(node.value, YamlValue::Map(_)) => {
                    self.read_group(STORE, node, root.findings);
                }
                "tls" => self.read_group(TLS, node, root.findings),
                "tokens" => self.settings.tokens = token::read(node, root.findings),
                other if self.read_setting(other, node, root.findings) => {}
                _ => {
                    let refused = [("token", TOKEN), ("grpc", UNSUPPORTED), ("resp", UNSUPPORTED)];
                    root.check_name(name, &fields_known(), &refused, "is not a field");
                }
            }
        }
        if root.node("rules").or(root.node("rate-limiter")).is_none() {
            root.mistake(Location::UNKNOWN, &format!("rules: is missing; write {EXAMPLE}"));
        }
    }

    fn read_rules(&mut self, node: &Node, findings: &mut Findings) {
        let expected = ("rules by name", EXAMPLE);
        let Some(mut section) = Section::open("rules: ".to_owned(), node, expected, findings) else { return };
        if section.fields.is_empty() {
            section.mistake(node.referenced, &format!("expected rules by name, found none; write {EXAMPLE}"));
        }
        let rules = section.fields.iter();
        self.rules.extend(rules.filter_map(|(name, node)| rule::read(name, node, section.findings)));
    }

    /// Reads a group of settings: `bounds`, `store` or `tls`. The `url` of `store` is the setting `store`.
    fn read_group(&mut self, (group, example): (&str, &str), node: &Node, findings: &mut Findings) {
        let expected = ("fields", example);
        let Some(mut section) = Section::open(format!("{group}: "), node, expected, findings) else {
            return;
        };
        for (name, node) in section.fields {
            let is_url = group == STORE.0 && name.value == "url";
            let setting = if is_url { group.to_owned() } else { format!("{group}.{}", name.value) };
            if !self.read_setting(&setting, node, section.findings) {
                let in_group = |name: &'static str| name.strip_prefix(group)?.strip_prefix('.');
                let mut known: Vec<_> = SETTINGS.iter().filter_map(|(name, _)| in_group(name)).collect();
                let refused = if group == STORE.0 { &[DEADLINE][..] } else { &[] };
                known.extend((group == STORE.0).then_some("url"));
                section.check_name(name, &known, refused, "is not a field here");
            }
        }
    }

    /// Reads a setting; returns whether the name is known.
    fn read_setting(&mut self, name: &str, node: &Node, findings: &mut Findings) -> bool {
        let Some((name, example)) = SETTINGS.iter().find(|(setting, _)| *setting == name) else {
            return false;
        };
        let items = match &node.value {
            YamlValue::List(items) if LISTS.contains(name) => items.iter().collect(),
            _ => vec![node],
        };
        let mut texts = Vec::new();
        for item in &items {
            if let Some(text) = item.value.text() {
                texts.push(text);
            } else {
                let text = format!("{name}: expected a text, found {}; {example}", item.value.kind());
                findings.add(item.referenced, &text);
            }
        }
        if texts.len() == items.len() {
            let source = findings.source(node.referenced);
            if let Err((index, text)) = self.given.set(&mut self.settings, name, texts, &source) {
                findings.add(items.get(index).unwrap_or(&node).referenced, &format!("{name}: {text}"));
            }
        }
        true
    }
}

/// Names of the top-level fields.
fn fields_known() -> Vec<&'static str> {
    let settings = SETTINGS.iter().map(|(name, _)| *name).filter(|name| !name.contains('.'));
    ["rules", "rate-limiter"].into_iter().chain(settings).chain([BOUNDS.0, TLS.0, "tokens"]).collect()
}
