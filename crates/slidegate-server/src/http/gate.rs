//! Who may ask: nobody from a foreign page, and only with the token where one is set.
//!
//! A server on loopback trusts the machine that it runs on. Browsers on that machine run programs of strangers: a page
//! may send requests to loopback (its `Origin` gives it away), or have its own name point there (its `Host` does).

use std::net::IpAddr;

use subtle::ConstantTimeEq;

use super::problem::{FOREIGN, Problem};
use super::route::Route;
use crate::service::Settings;

/// What the gate and the routes look at in a request's head.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) host: Option<&'a [u8]>,
    pub(super) origin: Option<&'a [u8]>,
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) content_type: Option<&'a [u8]>,
    /// What a browser says of the page that asks.
    pub(super) fetch_site: Option<&'a [u8]>,
}

/// Decides who passes.
#[derive(Debug)]
pub(super) struct Gate {
    /// The names by which it may be addressed; anything goes if it does not listen on loopback.
    names: Option<Vec<Box<str>>>,
    token: Option<Box<[u8]>>,
}

impl Gate {
    pub(super) fn new(settings: &Settings, address: IpAddr) -> Self {
        let address = address.to_canonical();
        let own = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let names = ["localhost", "127.0.0.1", "[::1]", &own].into_iter();
        let names = names.chain(settings.hosts.iter().map(String::as_str)).map(Box::from).collect();
        let token = settings.token.as_ref().map(|token| token.0.as_bytes().into());
        Self { names: address.is_loopback().then_some(names), token }
    }

    /// The route of a request that may take it.
    pub(super) fn pass<'a>(&self, head: &Head<'a>) -> Result<Route<'a>, Problem> {
        self.check_origin(head)?;
        let route = Route::find(head.method, head.path);
        // Without the token not even paths are told apart, open ones excepted.
        if !route.as_ref().is_ok_and(|route| route.is_open()) {
            self.check_token(head)?;
        }
        let route = route?;
        if route.has_body() && !head.content_type.is_some_and(is_json) {
            return Err(Problem::content_type());
        }
        Ok(route)
    }

    fn check_origin(&self, head: &Head<'_>) -> Result<(), Problem> {
        let Some(names) = &self.names else {
            return Ok(());
        };
        let is_own = |host: &[u8]| {
            let name = without_port(host);
            names.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
        };
        let text = if !head.host.is_none_or(is_own) {
            "host: is not a name of this server; ask localhost, or add the name to `hosts`"
        } else if !head.origin.is_none_or(|origin| host_of(origin).is_some_and(is_own)) {
            "origin: is a page of another site; ask from a program, or add its host to `hosts`"
        } else if !head.fetch_site.is_none_or(|site| matches!(site, b"none" | b"same-origin")) {
            // A page may ask without an origin where it does not read the answer: asking is enough to spend.
            "sec-fetch-site: is a page of another site; ask from a program"
        } else {
            return Ok(());
        };
        Err(Problem::new(FOREIGN, text))
    }

    fn check_token(&self, head: &Head<'_>) -> Result<(), Problem> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let text = match head.authorization.map(bearer) {
            // The lengths may be compared in the open: that of the token is no secret.
            Some(Some(shown)) if bool::from(shown.ct_eq(token)) => return Ok(()),
            Some(_) => "authorization: is not the token; send `authorization: Bearer TOKEN`",
            None => "authorization: is missing; send `authorization: Bearer TOKEN`",
        };
        Err(Problem::unauthorized(text))
    }
}

/// The token of `Bearer TOKEN`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// The host and port of an origin.
fn host_of(origin: &[u8]) -> Option<&[u8]> {
    origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"))
}

/// A host without its port; the colons of an IPv6 address stand in brackets.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&byte| byte == b':') {
        Some(colon) if host[colon..].iter().skip(1).all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// `application/json`, with a charset of UTF-8 at most.
fn is_json(value: &[u8]) -> bool {
    const JSON: &[u8] = b"application/json";
    let Some((media_type, rest)) = value.split_at_checked(JSON.len()) else {
        return false;
    };
    media_type.eq_ignore_ascii_case(JSON) && (rest.is_empty() || is_utf8(rest.trim_ascii()))
}

fn is_utf8(parameter: &[u8]) -> bool {
    let Some((b";", parameter)) = parameter.split_at_checked(1) else {
        return parameter.is_empty();
    };
    let parameter = parameter.trim_ascii();
    parameter.is_empty()
        || [&b"charset=utf-8"[..], b"charset=\"utf-8\""]
            .iter()
            .any(|good| parameter.eq_ignore_ascii_case(good))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Secret;

    fn settings() -> Settings {
        Settings { hosts: vec!["limiter.internal".into()], ..Settings::default() }
    }

    fn check<'a>() -> Head<'a> {
        let content_type = Some(&b"application/json"[..]);
        Head { method: "POST", path: "/v1/check", content_type, ..Head::default() }
    }

    #[test]
    fn only_own_names_reach_a_server_on_loopback() {
        let gate = Gate::new(&settings(), "127.0.0.2".parse().unwrap());
        for (site, passes) in
            [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false), ("", false)]
        {
            let head = Head { fetch_site: Some(site.as_bytes()), ..check() };
            assert_eq!(gate.pass(&head).is_ok(), passes, "{site}");
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
            let asked = |head| gate.pass(&head).is_ok();
            assert_eq!(asked(Head { host: Some(host.as_bytes()), ..check() }), passes, "{host}");
            let origin = format!("http://{host}");
            assert_eq!(asked(Head { origin: Some(origin.as_bytes()), ..check() }), passes, "{origin}");
        }
        for origin in ["null", "file://", "localhost", "ftp://localhost"] {
            assert!(gate.pass(&Head { origin: Some(origin.as_bytes()), ..check() }).is_err(), "{origin}");
        }
    }

    #[test]
    fn elsewhere_names_do_not_matter() {
        let gate = Gate::new(&settings(), "192.0.2.1".parse().unwrap());
        assert!(gate.pass(&Head { host: Some(b"evil.example"), origin: Some(b"null"), ..check() }).is_ok());
    }

    #[test]
    fn only_the_token_opens() {
        let gate = Gate::new(
            &Settings { token: Some(Secret("hunter2".into())), ..settings() },
            "::1".parse().unwrap(),
        );
        for (shown, passes) in [
            ("Bearer hunter2", true),
            ("bearer hunter2 ", true),
            ("Bearer hunter", false),
            ("Bearer hunter22", false),
            ("Basic hunter2", false),
            ("hunter2", false),
            ("Bearer", false),
            ("", false),
        ] {
            let head = Head { authorization: Some(shown.as_bytes()), ..check() };
            assert_eq!(gate.pass(&head).is_ok(), passes, "{shown}");
        }
        let unknown = Head { path: "/nowhere", ..check() };
        assert_eq!(gate.pass(&unknown).unwrap_err(), gate.pass(&check()).unwrap_err(), "paths stay hidden");
    }

    #[test]
    fn bodies_are_said_to_be_json() {
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
}
