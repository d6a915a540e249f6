//! What those who run a server ask it: who asks most, to read its configuration again, and what orchestrators ask:
//! whether it lives and is ready.

use serde::Serialize;
use slidegate::rule::OnStoreError;

use super::problem::{BAD_FILE, NO_FILE, Problem, STORE_BEHIND};
use super::reply::{Content, Reply};
use crate::reload::{FileReloader, ReloadResult};
use crate::service::Service;
use crate::text::escaped;
use crate::top::LISTED_MAX as TOP_LISTED_MAX;

/// Keys of each kind that are listed unless the query says otherwise.
const LISTED: usize = 20;

/// `GET /v1/top`: the keys that were allowed and denied most since the server started; `?n=` says how many.
pub(super) fn top(service: &Service, query: &str) -> Result<Reply, Problem> {
    let listed = match parameter(query, "n").map(str::parse) {
        None => LISTED,
        Some(Ok(listed @ 1..=TOP_LISTED_MAX)) => listed,
        Some(_) => {
            let text = format!("n: is not a number of keys; ask for 1 to {TOP_LISTED_MAX}");
            return Err(Problem::malformed(&text));
        }
    };
    Ok(Reply::of(&service.counters.top.read(listed)))
}

/// What a reload did.
#[derive(Debug, Serialize)]
struct Report<'a> {
    result: &'static str,
    added: &'a [String],
    changed: &'a [String],
    removed: &'a [String],
    needs_restart: &'a [&'static str],
    warnings: &'a [String],
}

/// `POST /v1/admin/reload`: what a changed file would do by itself, at once and with an answer.
pub(super) async fn reload(reloader: Option<&FileReloader>) -> Result<Reply, Problem> {
    let Some(reloader) = reloader else {
        let text = "the server was started without a file; start it with --config FILE";
        return Err(Problem::new(NO_FILE, text));
    };
    let report = reloader.reload_now().await;
    let (result, [added, changed, removed]): (_, [&[String]; 3]) = match &report.result {
        ReloadResult::Applied { added, changed, removed } => ("applied", [added, changed, removed]),
        ReloadResult::Unchanged => ("unchanged", [&[], &[], &[]]),
        ReloadResult::Refused(mistakes) => {
            let text = format!("the old rules stay in force: {}", mistakes.join(" | "));
            return Err(Problem::new(BAD_FILE, &text));
        }
        ReloadResult::StoreFailed(text) => {
            let text = format!("the old rules stay in force: {text}; it is tried again every few seconds");
            return Err(Problem::new(STORE_BEHIND, &text));
        }
    };
    let (needs_restart, warnings) = (&report.needs_restart, &report.warnings);
    Ok(Reply::of(&Report { result, added, changed, removed, needs_restart, warnings }))
}

/// `GET /livez`: the answer says it all. It never depends on the store, which a restart would not repair.
pub(super) fn live() -> Reply {
    Reply::text(200, Content::Text, "ok\n".to_owned())
}

/// `GET /readyz`: whether requests should come here; `?verbose` says why or why not, line by line.
pub(super) async fn ready(service: &Service, query: &str, draining: bool) -> Reply {
    let rules = service.rules();
    // Where every rule that refuses lets pass what the store does not answer, the server is of use without it.
    let needs_store = rules.iter().any(|rule| !rule.shadow() && rule.on_store_error() != OnStoreError::Allow);
    let store = service.store_answers().await;
    let config = "the last file was not accepted; the rules before it are in force";
    let config = (!service.counters.metrics.last_reload_ok()).then(|| config.to_owned());
    // What is looked at, why it fails, and whether the server is not ready without it.
    let parts = [
        ("serving", draining.then(|| "is about to end".to_owned()), true),
        ("store", store.err().map(|failure| failure.text), needs_store),
        ("config", config, false),
    ];
    let ready = parts.iter().all(|(_, failed, is_needed)| failed.is_none() || !is_needed);
    let mut text = String::new();
    if parameter(query, "verbose").is_some() {
        text.extend(parts.iter().map(|(name, failed, is_needed)| line(name, failed.as_deref(), *is_needed)));
    }
    text.push_str(if ready { "ok\n" } else { "not ready\n" });
    Reply::text(if ready { 200 } else { 503 }, Content::Text, text)
}

fn line(name: &str, failed: Option<&str>, is_needed: bool) -> String {
    match failed {
        None => format!("[+] {name}: ok\n"),
        Some(why) => format!("[{}] {name}: {}\n", if is_needed { '-' } else { '!' }, escaped(why)),
    }
}

/// The value of a parameter; the empty text if it has none.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_with_and_without_a_value() {
        assert_eq!(parameter("a=1&n=20&verbose", "n"), Some("20"));
        assert_eq!(parameter("a=1&verbose", "verbose"), Some(""));
        assert_eq!(parameter("nn=1", "n"), None);
        assert_eq!(parameter("", "n"), None);
    }

    #[test]
    fn a_line_says_how_bad_it_is() {
        assert_eq!(line("store", None, true), "[+] store: ok\n");
        assert_eq!(line("store", Some("gone\naway"), true), "[-] store: gone\\naway\n");
        assert_eq!(line("store", Some("gone"), false), "[!] store: gone\n");
    }
}
