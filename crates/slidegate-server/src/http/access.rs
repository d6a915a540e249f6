//! Access control: no requests from web pages of other sites, and none without the token if one is set.
//!
//! A server on loopback trusts its machine, but a browser on that machine runs foreign code: a page may send requests
//! to loopback (cross-site request, detected by `Origin`), or point its own domain there (DNS rebinding, detected by
//! `Host`).

use std::net::IpAddr;

use subtle::ConstantTimeEq;

use super::problem::{FOREIGN, Problem};
use super::route::Route;
use crate::service::Settings;

/// The parts of a request's head that access control and routing use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) host: Option<&'a [u8]>,
    pub(super) origin: Option<&'a [u8]>,
    pub(super) authorization: Option<&'a [u8]>,
    pub(super) content_type: Option<&'a [u8]>,
    /// `Sec-Fetch-Site`, which browsers send.
    pub(super) fetch_site: Option<&'a [u8]>,
}

/// Decides which requests are routed.
#[derive(Debug)]
pub(super) struct AccessControl {
    /// The allowed host names; `None` (any name) unless the server listens on loopback.
    names: Option<Vec<Box<str>>>,
    token: Option<Box<[u8]>>,
}

impl AccessControl {
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

    /// The route of a request, if the request may use it.
    pub(super) fn route<'a>(&self, head: &Head<'a>) -> Result<Route<'a>, Problem> {
        self.check_origin(head)?;
        let route = Route::find(head.method, head.path);
        // Without the token, a caller cannot tell known from unknown paths, except open ones.
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
            "host: is not a name of this server; send the request to localhost, or add the name to `hosts`"
        } else if !head.origin.is_none_or(|origin| host_of(origin).is_some_and(is_own)) {
            "origin: is a page of another site; send the request from a program, or add its host to `hosts`"
        } else if !head.fetch_site.is_none_or(|site| matches!(site, b"none" | b"same-origin")) {
            // A page may omit the origin if it does not read the answer, and the request alone would charge.
            "sec-fetch-site: is not the same origin; send the request from a program"
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
            // The comparison may leak the length, which is not secret.
            Some(Some(sent)) if bool::from(sent.ct_eq(token)) => return Ok(()),
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

/// Host and port of an origin.
fn host_of(origin: &[u8]) -> Option<&[u8]> {
    origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"))
}

/// A host without its port. The colons of an IPv6 address are inside brackets.
fn without_port(host: &[u8]) -> &[u8] {
    match host.iter().rposition(|&byte| byte == b':') {
        Some(colon) if host[colon..].iter().skip(1).all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

/// Whether it is `application/json`, with no parameter but `charset=utf-8`.
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
    fn a_server_on_loopback_accepts_only_its_own_names() {
        let access = AccessControl::new(&settings(), "127.0.0.2".parse().unwrap());
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

    #[test]
    fn a_server_off_loopback_accepts_any_name() {
        let access = AccessControl::new(&settings(), "192.0.2.1".parse().unwrap());
        assert!(
            access.route(&Head { host: Some(b"evil.example"), origin: Some(b"null"), ..check() }).is_ok()
        );
    }

    #[test]
    fn only_the_token_is_accepted() {
        let access = AccessControl::new(
            &Settings { token: Some(Secret("hunter2".into())), ..settings() },
            "::1".parse().unwrap(),
        );
        for (sent, passes) in [
            ("Bearer hunter2", true),
            ("bearer hunter2 ", true),
            ("Bearer hunter", false),
            ("Bearer hunter22", false),
            ("Basic hunter2", false),
            ("hunter2", false),
            ("Bearer", false),
            ("", false),
        ] {
            let head = Head { authorization: Some(sent.as_bytes()), ..check() };
            assert_eq!(access.route(&head).is_ok(), passes, "{sent}");
        }
        let unknown = Head { path: "/nowhere", ..check() };
        assert_eq!(
            access.route(&unknown).unwrap_err(),
            access.route(&check()).unwrap_err(),
            "paths stay hidden"
        );
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
}
