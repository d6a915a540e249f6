//! Hosts, pages, tokens and content types.

use super::*;
use crate::tokens::{Scope, Token};

fn settings() -> Settings {
    Settings { hosts: vec!["limiter.internal".into()], ..Settings::default() }
}

fn access(address: &str, tokens: Vec<Token>) -> AccessControl {
    let tokens = Arc::new(LiveTokens::new(Tokens(tokens)));
    AccessControl::new(&settings(), address.parse().unwrap(), tokens)
}

fn check<'a>() -> Head<'a> {
    let content_type = Some(&b"application/json"[..]);
    Head { method: "POST", path: "/v1/check", content_type, ..Head::default() }
}

#[test]
fn a_server_on_loopback_accepts_only_its_own_names() {
    let access = access("127.0.0.2", Vec::new());
    for (site, passes) in
        [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false), ("", false)]
    {
        let head = Head { fetch_site: Some(site.as_bytes()), ..check() };
        assert_eq!(access.route(&head).is_ok(), passes, "{site}");
    }
    for (host, passes) in [
        ("localhost", true),
        ("LocalHost:8080", true),
        ("127.0.0.1:80", true),
        ("127.0.0.2:80", true),
        ("[::1]:8080", true),
        ("[::1]", true),
        ("limiter.internal:8080", true),
        ("evil.example", false),
        ("evil.example:8080", false),
        ("localhost.evil.example", false),
        ("localhost:80.evil.example", false),
        ("127.0.0.1.nip.io", false),
        ("", false),
    ] {
        let routed = |head| access.route(&head).is_ok();
        assert_eq!(routed(Head { host: Some(host.as_bytes()), ..check() }), passes, "{host}");
        let origin = format!("http://{host}");
        assert_eq!(routed(Head { origin: Some(origin.as_bytes()), ..check() }), passes, "{origin}");
    }
    for origin in ["null", "file://", "localhost", "ftp://localhost"] {
        assert!(access.route(&Head { origin: Some(origin.as_bytes()), ..check() }).is_err(), "{origin}");
    }
}

/// Any name may be its own, so only writes from pages of other sites are refused.
#[test]
fn a_server_off_loopback_without_tokens_refuses_writes_from_pages_of_other_sites() {
    let access = access("192.0.2.1", Vec::new());
    let check = Head { host: Some(b"limiter.example:8080"), ..check() };
    assert!(access.route(&check).is_ok(), "a program");
    for (origin, site, passes) in [
        (Some("http://limiter.example:8080"), Some("same-origin"), true),
        (Some("http://LIMITER.example:8080"), None, true),
        (Some("https://limiter.internal"), None, true),
        (Some("http://limiter.example"), None, false),
        (Some("http://evil.example"), None, false),
        (Some("http://localhost:3000"), None, false),
        (Some("null"), None, false),
        (None, Some("none"), true),
        (None, Some("cross-site"), false),
        (None, Some("same-site"), false),
    ] {
        let (origin, fetch_site) = (origin.map(str::as_bytes), site.map(str::as_bytes));
        let head = Head { origin, fetch_site, ..check };
        assert_eq!(access.route(&head).is_ok(), passes, "{origin:?} {site:?}");
    }
    let foreign = Head { origin: Some(b"http://evil.example"), content_type: None, ..check };
    for (path, passes) in [("/v1/rules", true), ("/metrics", true), ("/v1/rlaas/alice", false)] {
        let head = Head { method: "GET", path, ..foreign };
        assert_eq!(access.route(&head).is_ok(), passes, "{path}");
    }
}

/// A browser never adds a token by itself.
#[test]
fn a_token_permits_what_an_origin_would_not() {
    let access = access("192.0.2.1", vec![Token::new("correct-horse-battery", Scopes::ALL)]);
    let authorization = Some(&b"Bearer correct-horse-battery"[..]);
    assert!(access.route(&Head { origin: Some(b"http://evil.example"), authorization, ..check() }).is_ok());
}

#[test]
fn only_a_token_is_accepted() {
    let access = access("::1", vec![Token::new("correct-horse-battery", Scopes::ALL)]);
    for (sent, passes) in [
        ("Bearer correct-horse-battery", true),
        ("bearer correct-horse-battery ", true),
        ("Bearer correct-horse-batter", false),
        ("Bearer correct-horse-batterz", false),
        ("Bearer correct-horse-battery2", false),
        ("Basic correct-horse-battery", false),
        ("correct-horse-battery", false),
        ("Bearer", false),
        ("", false),
    ] {
        let head = Head { authorization: Some(sent.as_bytes()), ..check() };
        assert_eq!(access.route(&head).is_ok(), passes, "{sent}");
    }
    let unknown = Head { path: "/nowhere", ..check() };
    assert_eq!(access.route(&unknown).unwrap_err(), access.route(&check()).unwrap_err(), "paths stay hidden");
}

/// The table of scopes in docs/configuration.md.
#[test]
fn every_route_needs_the_scope_of_its_row() {
    let document = include_str!("../../../../../docs/configuration.md");
    let rows = Scope::NAMES.map(|name| {
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        (name, row.unwrap_or_else(|| panic!("{name} has no row")))
    });
    for &(path, _, route) in super::super::route::PATHS.iter().chain(super::super::route::TEMPLATES) {
        let named = |row: &str| row.contains(&format!("`{path}`"));
        let expected = rows.iter().find(|(_, row)| named(row)).map(|(name, _)| *name);
        assert_eq!(route.scope("").map(Scope::name), expected, "{path}");
    }
    assert!(rows[1].1.contains("`/readyz?verbose`"));
    assert_eq!(Route::Readyz.scope("verbose"), Some(Scope::Read));
}

#[test]
fn a_token_without_the_scope_is_refused_by_the_scopes_name() {
    let mut scopes = Scopes::default();
    scopes.insert(Scope::Check);
    let access = access("::1", vec![Token::new("correct-horse-battery", scopes)]);
    let authorization = Some(&b"Bearer correct-horse-battery"[..]);
    let check = Head { authorization, ..check() };
    assert!(access.route(&check).is_ok());
    assert!(access.route(&Head { path: "/v1/peek", ..check }).is_ok());
    let refused = access.route(&Head { path: "/v1/reset", ..check }).unwrap_err();
    let lacks = Problem::new(SCOPE, "authorization: lacks the scope `admin`; send a token that has it");
    assert_eq!(refused, lacks);
    let get = Head { method: "GET", content_type: None, ..check };
    assert!(access.route(&Head { path: "/readyz", ..get }).is_ok());
    assert!(access.route(&Head { path: "/readyz", query: "verbose", ..get }).is_err());
    assert!(access.route(&Head { path: "/readyz", authorization: None, ..get }).is_ok());
}

#[test]
fn the_content_type_must_be_json() {
    for (value, good) in [
        ("application/json", true),
        ("Application/JSON", true),
        ("application/json; charset=utf-8", true),
        ("application/json;charset=\"UTF-8\"", true),
        ("application/json;", true),
        ("application/json; charset=latin1", false),
        ("application/jsonx", false),
        ("application/json-seq", false),
        ("text/plain", false),
        ("application/x-www-form-urlencoded", false),
        ("", false),
    ] {
        assert_eq!(is_json(value.as_bytes()), good, "{value}");
    }
}
