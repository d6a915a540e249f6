//! Whether the server lives, and whether it is ready: what orchestrators ask.

use slidegate::rule::OnStoreError;

use super::admin::parameter;
use super::reply::{Content, Reply};
use crate::service::Service;
use crate::text::escaped;

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
    let config = (!service.counted.metrics.last_reload_ok()).then(|| config.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_bad_it_is() {
        assert_eq!(line("store", None, true), "[+] store: ok\n");
        assert_eq!(line("store", Some("gone\naway"), true), "[-] store: gone\\naway\n");
        assert_eq!(line("store", Some("gone"), false), "[!] store: gone\n");
    }
}
