//! Whether the server lives, and whether it is ready: what orchestrators ask.

use std::fmt::Write;

use slidegate::rule::OnStoreError;

use super::admin::parameter;
use super::reply::{Content, Reply};
use crate::service::Service;

/// `GET /livez`: whoever gets this answer knows. It never depends on the store: starting anew would not mend that.
pub(super) fn live() -> Reply {
    Reply::text(200, Content::Text, "ok\n".to_owned())
}

/// `GET /readyz`: whether requests should come here; `?verbose` says why or why not, line by line.
pub(super) async fn ready(service: &Service, query: &str, draining: bool) -> Reply {
    let rules = service.rules();
    // Where every rule that refuses lets pass what the store does not answer, the server is of use without it.
    let needs_store = rules.iter().any(|rule| !rule.shadow() && rule.on_store_error() != OnStoreError::Allow);
    let store = service.store_answers().await;
    let parts = [
        Part { name: "serving", failed: draining.then(|| "is about to end".to_owned()), is_needed: true },
        Part { name: "store", failed: store.err().map(|failure| failure.text), is_needed: needs_store },
        Part {
            name: "config",
            failed: (!service.counted.metrics.last_reload_ok())
                .then(|| "the last file was not accepted; the rules before it are in force".to_owned()),
            is_needed: false,
        },
    ];
    let ready = parts.iter().all(|part| part.failed.is_none() || !part.is_needed);
    let mut text = String::new();
    if parameter(query, "verbose").is_some() {
        for part in &parts {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{}", part.line());
        }
    }
    text.push_str(if ready { "ok\n" } else { "not ready\n" });
    Reply::text(if ready { 200 } else { 503 }, Content::Text, text)
}

/// Something that readiness depends on, or that one should know.
struct Part {
    name: &'static str,
    failed: Option<String>,
    /// Whether the server is not ready without it.
    is_needed: bool,
}

impl Part {
    fn line(&self) -> String {
        let name = self.name;
        match &self.failed {
            None => format!("[+] {name}: ok"),
            Some(why) if self.is_needed => format!("[-] {name}: {}", crate::text::escaped(why)),
            Some(why) => format!("[!] {name}: {}", crate::text::escaped(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_bad_it_is() {
        let line = |failed: Option<&str>, is_needed| {
            Part { name: "store", failed: failed.map(str::to_owned), is_needed }.line()
        };
        assert_eq!(line(None, true), "[+] store: ok");
        assert_eq!(line(Some("gone\naway"), true), "[-] store: gone\\naway");
        assert_eq!(line(Some("gone"), false), "[!] store: gone");
    }
}
