//! The settings: what each is called, and how its text is read, whoever gives it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use slidegate::store::BUDGET_BYTES_MIN;
use slidegate_redis::WAIT_MAX;

use super::amount::{bytes, count, duration};
use super::layer::{Given, Layer};
use super::mistake::Source;
use super::token;
use crate::service::HeaderSet;
use crate::text::{did_you_mean, shown};
use slidegate_stores::{StoreUrl, UrlError};

/// Names of all settings, as a file nests them. Variables of the environment are called after them.
pub(crate) const SETTINGS: [&str; 15] = [
    "http",
    "threads",
    "store",
    "deadline",
    "memory_budget",
    "token_file",
    "hosts",
    "headers",
    "inline_rules",
    "bounds.body_bytes",
    "bounds.header_bytes",
    "bounds.connections",
    "bounds.request_time",
    "bounds.idle_time",
    "bounds.drain_time",
];

/// Settings of which several may be given: a list in a file, separated by commas elsewhere.
pub(crate) const LISTS: [&str; 2] = ["hosts", "headers"];

const HEADER_SETS: [(&str, HeaderSet); 3] =
    [("draft-11", HeaderSet::Draft11), ("x-ratelimit", HeaderSet::XRateLimit), ("github", HeaderSet::GitHub)];

const TIME_MAX: Duration = Duration::from_secs(3_600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// The variable of the environment that gives a setting.
pub(crate) fn variable(setting: &str) -> String {
    format!("SLIDEGATE_{}", setting.replace('.', "_").to_ascii_uppercase())
}

/// The texts of a setting that was given as one.
pub(super) fn texts(setting: &str, text: &str) -> Vec<String> {
    if !LISTS.contains(&setting) {
        return vec![text.to_owned()];
    }
    text.split(',').map(|part| part.trim().to_owned()).collect()
}

/// What is wrong with a setting: which of its texts, and why.
pub(super) type Wrong = (usize, String);

/// Reads a setting into a layer. Only those of [`LISTS`] have other than one text.
pub(super) fn set(layer: &mut Layer, setting: &str, texts: &[String], source: &Source) -> Result<(), Wrong> {
    let wrong = |text: String| (0, text);
    let text = texts.first().map_or("", String::as_str);
    let of_bytes = |least, most| bytes(text, least, most).map_err(wrong);
    let time = || duration(text, MILLISECOND, TIME_MAX).map_err(wrong);
    match setting {
        "http" => put(&mut layer.http, address(text).map_err(wrong)?, source),
        "threads" => put(&mut layer.threads, size(count(text, 1, 1_024).map_err(wrong)?), source),
        "store" => put(&mut layer.store, store(text).map_err(wrong)?, source),
        "deadline" => put(&mut layer.deadline, duration(text, MILLISECOND, WAIT_MAX).map_err(wrong)?, source),
        "memory_budget" => put(&mut layer.memory_budget, of_bytes(BUDGET_BYTES_MIN, 1 << 50)?, source),
        "token_file" => put(&mut layer.token, token::read(Path::new(text)).map_err(wrong)?, source),
        "hosts" => put(&mut layer.hosts, each(texts, host)?, source),
        "headers" => put(&mut layer.headers, headers(texts)?, source),
        "inline_rules" => put(&mut layer.inline_rules, boolean(text).map_err(wrong)?, source),
        "bounds.body_bytes" => put(&mut layer.body_bytes, size(of_bytes(1 << 10, 64 << 20)?), source),
        "bounds.header_bytes" => put(&mut layer.header_bytes, size(of_bytes(8 << 10, 1 << 20)?), source),
        "bounds.connections" => {
            put(&mut layer.connections, size(count(text, 1, 1_000_000).map_err(wrong)?), source);
        }
        "bounds.request_time" => put(&mut layer.request_time, time()?, source),
        "bounds.idle_time" => put(&mut layer.idle_time, time()?, source),
        "bounds.drain_time" => put(&mut layer.drain_time, time()?, source),
        other => return Err((0, format!("`{}` is not a setting", shown(other)))),
    }
    Ok(())
}

fn put<T>(field: &mut Option<Given<T>>, value: T, source: &Source) {
    *field = Some(Given { value, source: source.clone() });
}

/// Small enough for any machine, by the range that was checked.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "`{}` is not an address and a port; write for example 127.0.0.1:8080 or [::1]:8080",
            shown(text)
        )
    })
}

fn store(text: &str) -> Result<StoreUrl, String> {
    text.parse().map_err(|error: UrlError| {
        let text = error.to_string();
        text.strip_prefix("store: ").unwrap_or(&text).to_owned()
    })
}

fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("expected true or false, found `{}`; write one of them", shown(text)))
}

fn each<T>(texts: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Wrong> {
    texts.iter().enumerate().map(|(index, text)| read(text).map_err(|text| (index, text))).collect()
}

fn host(text: &str) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if text.is_empty() || text.len() > 253 || !text.bytes().all(good) {
        let example = "write it as callers do, without scheme or path: slidegate.internal";
        return Err(format!("`{}` is not the name of a host; {example}", shown(text)));
    }
    Ok(text.to_ascii_lowercase())
}

/// `none` alone is no header at all.
fn headers(texts: &[String]) -> Result<Vec<HeaderSet>, Wrong> {
    if matches!(texts, [text] if text == "none") {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let Some((_, set)) = HEADER_SETS.iter().find(|(name, _)| name == text) else {
            let names = ["draft-11", "x-ratelimit", "github", "none"];
            return Err((index, format!("`{}` is unknown; {}", shown(text), did_you_mean(text, &names))));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(setting: &str, texts: &[&str]) -> Wrong {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        set(&mut Layer::default(), setting, &texts, &Source::Flag("--x".into())).unwrap_err()
    }

    #[test]
    fn every_setting_has_a_reader_and_every_reader_refuses_nonsense() {
        for setting in SETTINGS {
            let (_, text) = wrong(setting, &["no such thing \u{1}"]);
            assert!(!text.contains("is not a setting") && text.contains("; "), "{setting}: {text}");
        }
        assert!(wrong("colour", &["red"]).1.contains("is not a setting"));
        assert_eq!(variable("bounds.body_bytes"), "SLIDEGATE_BOUNDS_BODY_BYTES");
    }

    #[test]
    fn the_wrong_one_of_several_is_named() {
        assert_eq!(
            wrong("headers", &["draft-11", "githbu"]),
            (1, "`githbu` is unknown; did you mean `github`?".into())
        );
        assert_eq!(wrong("headers", &["draft-11", "draft-11"]).0, 1);
        assert!(wrong("headers", &["x-ratelimit", "github"]).1.contains("the same names"));
        assert!(wrong("headers", &["draft-11", "none"]).1.contains("`none` is unknown"));
        assert_eq!(wrong("hosts", &["a.example", "http://b.example"]).0, 1);
    }

    #[test]
    fn a_password_is_not_repeated() {
        let (_, text) = wrong("store", &["mysql://root:hunter2@db"]);
        assert!(!text.contains("hunter2"), "{text}");
    }
}
