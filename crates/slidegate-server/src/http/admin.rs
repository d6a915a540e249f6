//! Routes for operators and orchestrators: the busiest keys, reload, liveness and readiness.

use std::sync::Arc;

use serde::Serialize;
use slidegate::rule::OnStoreError;

use super::problem::{BAD_FILE, NO_FILE, Problem, STORE_NOT_MIGRATED};
use super::query::parameter;
use super::reply::{Content, Reply};
use crate::reload::{FileReloader, ReloadResult};
use crate::service::Service;
use crate::text::escaped;
use crate::top::LISTED_MAX as TOP_LISTED_MAX;

/// Default number of listed keys of each kind.
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

/// The answer to a reload.
#[derive(Debug, Serialize)]
struct Report<'a> {
    result: &'static str,
    added: &'a [String],
    changed: &'a [String],
    removed: &'a [String],
    needs_restart: &'a [&'static str],
    warnings: &'a [String],
}

/// `POST /v1/admin/reload`: reloads the file at once and answers with the result.
pub(super) async fn reload(reloader: Option<&Arc<FileReloader>>) -> Result<Reply, Problem> {
    let Some(reloader) = reloader else {
        let text = "the server was started without a file; start it with --config FILE";
        return Err(Problem::new(NO_FILE, text));
    };
    let reloader = Arc::clone(reloader);
    // In a task of its own: a client that leaves must not end a reload between its steps.
    let reload = tokio::spawn(async move { reloader.reload_now().await });
    let report = reload.await.expect("a reload does not panic, and its runtime outlives the request");
    let (result, [added, changed, removed]): (_, [&[String]; 3]) = match &report.result {
        ReloadResult::Applied { added, changed, removed } => ("applied", [added, changed, removed]),
        ReloadResult::Unchanged => ("unchanged", [&[], &[], &[]]),
        ReloadResult::Refused(mistakes) => {
            let text = format!("the old rules stay in force: {}", mistakes.join(" | "));
            return Err(Problem::new(BAD_FILE, &text));
        }
        ReloadResult::StoreFailed(text) => {
            let text =
                format!("the old rules stay in force: {text}; check the store, the server retries every 5 s");
            return Err(Problem::new(STORE_NOT_MIGRATED, &text));
        }
    };
    let (needs_restart, warnings) = (&report.needs_restart, &report.warnings);
    Ok(Reply::of(&Report { result, added, changed, removed, needs_restart, warnings }))
}

/// `GET /livez`: always 200. It never depends on the store, which a restart would not repair.
pub(super) fn live() -> Reply {
    Reply::text(200, Content::Text, "ok\n".to_owned())
}

/// `GET /readyz`: whether the server should get requests; `?verbose` adds a line per check.
pub(super) async fn ready(service: &Service, query: &str, draining: bool) -> Reply {
    let rules = service.rules();
    // Rules with another outage policy than `deny` are answered without the store.
    let needs_store = rules.iter().any(|rule| !rule.shadow() && rule.on_store_error() == OnStoreError::Deny);
    let probed = service.probe_store().await;
    let store = probed.map(|cause| format!("{}: {}", cause.name(), cause.remedy()));
    let config = "the last file was not accepted; the rules before it are in force";
    let config = (!service.counters.metrics.last_reload_ok()).then(|| config.to_owned());
    // Name of the check, why it fails, and whether readiness needs it.
    let mut checks = vec![
        ("serving", draining.then(|| "is shutting down".to_owned()), true),
        ("store", store, needs_store),
        ("config", config, false),
    ];
    // The probe is answered, but other requests are not, or were not a moment ago.
    for failing in service.counters.store_health.failing() {
        let (cause, failures) = (failing.cause, failing.failures);
        if Some(cause) != probed {
            let text = format!("{}: {} ({failures} failures)", cause.name(), cause.remedy());
            checks.push(("store", Some(text), false));
        }
    }
    let unmet = checks.iter().filter(|(_, _, is_needed)| *is_needed);
    let unmet: Vec<_> = unmet.filter_map(|(name, failed, _)| Some((*name, failed.as_deref()?))).collect();
    let ready = unmet.is_empty();
    let mut text = String::new();
    if parameter(query, "verbose").is_some() {
        text.extend(checks.iter().map(|(name, failed, is_needed)| line(name, failed.as_deref(), *is_needed)));
    }
    text.push_str(&summary(&unmet));
    Reply::text(if ready { 200 } else { 503 }, Content::Text, text)
}

/// `ok`, or the names of the checks that failed, each with the first words of its cause.
fn summary(unmet: &[(&str, &str)]) -> String {
    if unmet.is_empty() {
        return "ok\n".to_owned();
    }
    let short = |(name, why): &(&str, &str)| format!("{name} ({})", why.split(':').next().unwrap_or(why));
    format!("not ready: {}\n", unmet.iter().map(short).collect::<Vec<_>>().join(", "))
}

fn line(name: &str, failed: Option<&str>, is_needed: bool) -> String {
    match failed {
        None => format!("[+] {name}: ok\n"),
        Some(why) => format!("[{}] {name}: {}\n", if is_needed { '-' } else { '!' }, escaped(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_fails() {
        assert_eq!(summary(&[]), "ok\n");
        let unmet = [("serving", "is shutting down"), ("store", "read-only: no writes; write")];
        assert_eq!(summary(&unmet), "not ready: serving (is shutting down), store (read-only)\n");
    }

    #[test]
    fn a_line_marks_ok_failed_and_warning() {
        assert_eq!(line("store", None, true), "[+] store: ok\n");
        assert_eq!(line("store", Some("gone\naway"), true), "[-] store: gone\\naway\n");
        assert_eq!(line("store", Some("gone"), false), "[!] store: gone\n");
    }
}
