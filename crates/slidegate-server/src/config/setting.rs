//! The settings: their names, how each is read from text, and which were given.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use slidegate::rate::{WINDOW_MAX, WINDOW_MIN};
use slidegate::store::BUDGET_BYTES_MIN;
use slidegate_redis::{RedisOptions, WAIT_MAX};
use slidegate_stores::{StoreUrl, UrlError};

use super::amount::{bytes, count, duration};
use super::finding::Source;
use crate::service::{HeaderSet, STORE_FIELD, Secret, Settings};
use crate::text::{did_you_mean, excerpt};
use crate::tokens::{Scopes, TOKEN_BYTES_MAX, TOKEN_BYTES_MIN, Token};

/// All settings, named as a file nests them, each with a remedy. Environment variables are named after them.
pub(super) const SETTINGS: [(&str, &str); 28] = [
    ("http", "write `http: 127.0.0.1:8080`"),
    ("threads", "write a whole number"),
    ("store", "write `store: memory`"),
    ("store.key_prefix", "write a text such as app"),
    ("store.key_template", "write a text such as \"app:{key}:{rule}\""),
    ("store.log_layout", "write packed or sorted-set"),
    ("store.connections", "write a whole number"),
    ("store.connect_timeout", "write a duration such as 2s"),
    ("store.deny_cache", "write a duration such as 200ms, or off"),
    ("deadline", "write `deadline: 50ms`"),
    ("memory_budget", "write `memory_budget: 512MiB`"),
    ("token_file", "write `token_file: PATH`"),
    ("hash_keys_secret_file", "write `hash_keys_secret_file: PATH`"),
    ("hosts", "write `hosts: [slidegate.internal]`"),
    ("headers", "write `headers: [draft-11]`"),
    ("inline_rules", "write true or false"),
    ("bounds.body_bytes", "write an amount such as 64KiB"),
    ("bounds.header_bytes", "write an amount such as 64KiB"),
    ("bounds.connections", "write a whole number"),
    ("bounds.buffer_bytes", "write an amount such as 64MiB"),
    ("bounds.request_time", "write a duration such as 10s"),
    ("bounds.idle_time", "write a duration such as 10s"),
    ("bounds.drain_time", "write a duration such as 10s"),
    ("bounds.inline_rules", "write a whole number"),
    ("bounds.inline_window", "write a duration such as 31d"),
    ("tls.certificate", "write the path of a PEM file"),
    ("tls.key", "write the path of a PEM file"),
    ("tls.client_ca", "write the path of a PEM file"),
];

/// Settings that take several values: a list in a file, separated by commas elsewhere.
pub(super) const LISTS: [&str; 2] = ["hosts", "headers"];

/// Settings that name the file of a secret. It has a file of its own because many people may read the configuration.
pub(super) const SECRET_FILES: [&str; 3] = ["token_file", "hash_keys_secret_file", "tls.key"];

const HEADER_SETS: [(&str, HeaderSet); 3] =
    [("draft-11", HeaderSet::Draft11), ("x-ratelimit", HeaderSet::XRateLimit), ("github", HeaderSet::GitHub)];

const TIME_MAX: Duration = Duration::from_secs(3_600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The name of the environment variable of a setting.
pub(super) fn variable(setting: &str) -> String {
    format!("SLIDEGATE_{}", setting.replace('.', "_").to_ascii_uppercase())
}

/// The valid settings that were given, each with its source and texts.
#[derive(Clone, Default)]
pub(crate) struct GivenSettings(BTreeMap<&'static str, (Source, Vec<String>)>);

/// Leaves out the texts: the URL of a store may contain a password.
impl fmt::Debug for GivenSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl GivenSettings {
    /// Reads a setting into `settings`, and records its source.
    pub(super) fn set(
        &mut self,
        settings: &mut Settings,
        setting: &'static str,
        texts: Vec<String>,
        source: &Source,
    ) -> Result<(), SettingError> {
        if let Some(other) = excluded_by(setting).filter(|other| self.0.contains_key(other)) {
            return Err((0, format!("cannot be combined with {other}; keep one of them")));
        }
        set(settings, setting, &texts)?;
        self.0.insert(setting, (source.clone(), texts));
        Ok(())
    }

    /// These settings, completed by those of `below`.
    pub(super) fn layered_over(&self, below: &Self) -> Self {
        Self(below.0.iter().chain(&self.0).map(|(setting, given)| (*setting, given.clone())).collect())
    }

    pub(super) fn source(&self, setting: &str) -> Option<Source> {
        self.0.get(setting).map(|(source, _)| source.clone())
    }

    /// The texts of a setting, to detect changes.
    pub(super) fn texts(&self, setting: &str) -> Option<&[String]> {
        self.0.get(setting).map(|(_, texts)| texts.as_slice())
    }

    /// The value of `inline_rules`, if given.
    pub(super) fn inline_rules(&self) -> Option<bool> {
        self.texts("inline_rules").map(|texts| texts == ["true"])
    }
}

/// The other setting that names the keys of a Redis. A source of settings may give one of them.
fn excluded_by(setting: &str) -> Option<&'static str> {
    match setting {
        "store.key_prefix" => Some("store.key_template"),
        "store.key_template" => Some("store.key_prefix"),
        _ => None,
    }
}

/// The index of the wrong text of a setting, and the error.
pub(super) type SettingError = (usize, String);

/// Reads a setting. Only those of [`LISTS`] take several texts.
fn set(settings: &mut Settings, setting: &'static str, texts: &[String]) -> Result<(), SettingError> {
    match setting {
        "hosts" => settings.hosts = each(texts, host)?,
        "headers" => settings.headers = headers(texts)?,
        _ => {
            let text = texts.first().map_or("", String::as_str);
            set_one(settings, setting, text).map_err(|text| (0, text))?;
        }
    }
    Ok(())
}

fn set_one(settings: &mut Settings, setting: &'static str, text: &str) -> Result<(), String> {
    if let Some(parameter) = setting.strip_prefix(STORE_FIELD) {
        return store_parameter(settings, parameter, text);
    }
    let bounds = &mut settings.bounds;
    let time = || duration(text, MILLISECOND, TIME_MAX);
    match setting {
        "http" => settings.http = address(text)?,
        "threads" => settings.threads = size(count(text, 1, 1_024)?),
        "store" => settings.store = store(text)?,
        "deadline" => settings.deadline = duration(text, MILLISECOND, WAIT_MAX)?,
        "memory_budget" => settings.memory_budget = bytes(text, BUDGET_BYTES_MIN, 1 << 50)?,
        "token_file" => settings.token = Some(Token::new(&secret(text)?.0, Scopes::ALL)),
        "hash_keys_secret_file" => settings.hash_keys_secret = Some(secret(text)?),
        // Checked only: the rule set holds it, so that it changes without a restart.
        "inline_rules" => _ = boolean(text)?,
        "bounds.body_bytes" => bounds.body_bytes = size(bytes(text, 1 << 10, 64 << 20)?),
        "bounds.header_bytes" => bounds.header_bytes = size(bytes(text, 8 << 10, 1 << 20)?),
        "bounds.connections" => bounds.connections = size(count(text, 1, 1_000_000)?),
        "bounds.buffer_bytes" => bounds.buffer_bytes = size(bytes(text, 1 << 20, 1 << 40)?),
        "bounds.request_time" => bounds.request_time = time()?,
        "bounds.idle_time" => bounds.idle_time = time()?,
        "bounds.drain_time" => bounds.drain_time = time()?,
        "bounds.inline_rules" => bounds.inline_rules = size(count(text, 1, 100_000)?),
        "bounds.inline_window" => bounds.inline_window = duration(text, WINDOW_MIN, WINDOW_MAX)?,
        "tls.certificate" => settings.tls.certificate = Some(readable(text)?),
        "tls.key" => settings.tls.key = Some(readable(text)?),
        "tls.client_ca" => settings.tls.client_ca = Some(readable(text)?),
        other => return Err(format!("`{}` is not a setting", excerpt(other))),
    }
    Ok(())
}

/// The range check keeps it within `usize`.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let example = "write for example 127.0.0.1:8080 or [::1]:8080";
    text.parse().map_err(|_| format!("`{}` is not an address and a port; {example}", excerpt(text)))
}

fn store(text: &str) -> Result<StoreUrl, String> {
    text.parse().map_err(|error: UrlError| {
        let text = error.to_string();
        text.strip_prefix("store: ").unwrap_or(&text).to_owned()
    })
}

/// Reads a setting of a Redis as the parameter of its URL is read. One of the two settings that name the keys replaces the
/// other, which comes from a source below.
fn store_parameter(settings: &mut Settings, name: &'static str, text: &str) -> Result<(), String> {
    let any = RedisOptions::new("redis://localhost").and_then(|any| any.parameter(name, text));
    any.map_err(|error| {
        let text = error.to_string();
        text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_owned()
    })?;
    match name {
        "key_prefix" => settings.store_parameters.remove("key_template"),
        "key_template" => settings.store_parameters.remove("key_prefix"),
        _ => None,
    };
    settings.store_parameters.insert(name, text.to_owned());
    Ok(())
}

fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("expected true or false, found `{}`; write one of them", excerpt(text)))
}

fn each<T>(texts: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, SettingError> {
    texts.iter().enumerate().map(|(index, text)| read(text).map_err(|text| (index, text))).collect()
}

fn host(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if text.is_empty() || text.len() > 253 || !text.bytes().all(good) {
        let example = "write it as callers do, without scheme or path: slidegate.internal";
        return Err(format!("`{}` is not the name of a host; {example}", excerpt(text)));
    }
    Ok(text.to_ascii_lowercase())
}

/// Reads the header sets; `none` alone means no headers.
fn headers(texts: &[String]) -> Result<Vec<HeaderSet>, SettingError> {
    if matches!(texts, [text] if text == "none") {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let Some((_, set)) = HEADER_SETS.iter().find(|(name, _)| name == text) else {
            let names = ["draft-11", "x-ratelimit", "github", "none"];
            return Err((index, format!("`{}` is unknown; {}", excerpt(text), did_you_mean(text, &names))));
        };
        if found.contains(set) {
            return Err((index, format!("`{text}` is given twice; keep one of them")));
        }
        found.push(*set);
    }
    if found.contains(&HeaderSet::XRateLimit) && found.contains(&HeaderSet::GitHub) {
        let text = "x-ratelimit and github use the same names with other meanings; keep one of them";
        return Err((texts.len() - 1, text.to_owned()));
    }
    Ok(found)
}

/// Reads a secret from its file; a line break at the end does not count. Errors never quote the secret.
fn secret(path: &str) -> Result<Secret, String> {
    let name = excerpt(path);
    let mut text = String::new();
    let most = TOKEN_BYTES_MAX as u64 + 3;
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|error| format!("`{name}` cannot be read: {error}; check the path and its permissions"))?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&secret.len()) {
        let range = format!("{TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes");
        let remedy = "write one, for example with `openssl rand -hex 32`";
        return Err(format!("`{name}` holds no secret of {range}; {remedy}"));
    }
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        let why = "more than one word, or one that is not ASCII";
        return Err(format!("`{name}` holds {why}; write one line of ASCII"));
    }
    Ok(Secret(secret.to_owned()))
}

/// The path of a file that can be read.
fn readable(path: &str) -> Result<PathBuf, String> {
    let opened = File::open(path).map_err(|error| {
        format!("`{}` cannot be read: {error}; check the path and its permissions", excerpt(path))
    });
    opened.map(|_| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(setting: &'static str, texts: &[&str]) -> SettingError {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        set(&mut Settings::default(), setting, &texts).unwrap_err()
    }

    #[test]
    fn every_setting_is_read_and_refuses_nonsense() {
        for (setting, _) in SETTINGS {
            let (_, text) = wrong(setting, &["no such {thing} \u{1}"]);
            assert!(!text.contains("is not a setting") && text.contains("; "), "{setting}: {text}");
        }
        assert!(wrong("colour", &["red"]).1.contains("is not a setting"));
        assert_eq!(variable("bounds.body_bytes"), "SLIDEGATE_BOUNDS_BODY_BYTES");
    }

    #[test]
    fn one_source_names_the_keys_once_and_a_higher_one_replaces_that() {
        let (mut settings, flag) = (Settings::default(), Source::Name("--x".to_owned()));
        let mut file = GivenSettings::default();
        let mut set = |given: &mut GivenSettings, setting, text: &str| {
            given.set(&mut settings, setting, vec![text.to_owned()], &flag).map_err(|(_, text)| text)?;
            Ok(settings
                .store_parameters
                .iter()
                .map(|(name, text)| format!("{name}={text}"))
                .collect::<Vec<_>>())
        };
        assert_eq!(set(&mut file, "store.key_prefix", "app"), Ok(vec!["key_prefix=app".to_owned()]));
        let twice: Result<Vec<String>, String> = set(&mut file, "store.key_template", "{key}");
        assert_eq!(twice, Err("cannot be combined with store.key_prefix; keep one of them".to_owned()));
        let mut environment = GivenSettings::default();
        let replaced = set(&mut environment, "store.key_template", "{key}:{rule}");
        assert_eq!(replaced, Ok(vec!["key_template={key}:{rule}".to_owned()]));
    }

    #[test]
    fn an_error_in_a_list_names_the_index() {
        assert_eq!(wrong("headers", &["draft-11", "draft-11"]).0, 1);
        assert!(wrong("headers", &["x-ratelimit", "github"]).1.contains("the same names"));
        assert!(wrong("headers", &["draft-11", "none"]).1.contains("`none` is unknown"));
    }
}
