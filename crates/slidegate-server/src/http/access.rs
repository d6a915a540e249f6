//! Access control: no requests from web pages of other sites, and none without a token if there are tokens.
//!
//! A server on loopback trusts its machine, but a browser on that machine runs foreign code: a page may send requests
//! to loopback (cross-site request, detected by `Origin`), or point its own domain there (DNS rebinding, detected by
//! `Host`). A server in a network without tokens trusts its network, where the same holds: there a page may read, which
//! gives it nothing without permission of this server, but not write. The names of such a server are not known.

use std::net::IpAddr;
use std::sync::Arc;

use super::problem::{FOREIGN, Problem, SCOPE};
use super::query;
use super::route::Route;
use crate::service::Settings;
use crate::tokens::{LiveTokens, Scopes, Tokens};

/// The parts of a request's head that access control and routing use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// Without the question mark.
    pub(super) query: &'a str,
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
    is_loopback: bool,
    /// The known host names of this server.
    names: Vec<Box<str>>,
    tokens: Arc<LiveTokens>,
}

impl AccessControl {
    pub(super) fn new(settings: &Settings, address: IpAddr, tokens: Arc<LiveTokens>) -> Self {
        let address = address.to_canonical();
        let is_loopback = address.is_loopback();
        let own = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let of_loopback = ["localhost", "127.0.0.1", "[::1]", &own].into_iter().filter(|_| is_loopback);
        let names = of_loopback.chain(settings.hosts.iter().map(String::as_str)).map(Box::from).collect();
        Self { is_loopback, names, tokens }
    }

    /// The route of a request, if the request may use it.
    pub(super) fn route<'a>(&self, head: &Head<'a>) -> Result<Route<'a>, Problem> {
        let tokens = self.tokens.load();
        if self.is_loopback {
            self.check_host(head)?;
            self.check_page(head)?;
        }
        let route = Route::find(head.method, head.path);
        // Without a token, a caller cannot tell known from unknown paths, except open ones.
        let needed = route.as_ref().map(|route| route.scope(head.query));
        if !matches!(needed, Ok(None)) {
            let scopes = check_token(&tokens, head)?;
            if let Ok(Some(scope)) = needed
                && !scopes.contains(scope)
            {
                let name = scope.name();
                let text = format!("authorization: lacks the scope `{name}`; send a token that has it");
                return Err(Problem::new(SCOPE, &text));
            }
        }
        let route = route?;
        // Elsewhere any name may be this server's, and a browser never adds a token by itself.
        if !self.is_loopback && tokens.is_empty() && route.writes() {
            self.check_page(head)?;
        }
        query::check(head.query, route.parameters())?;
        if route.has_body() && !head.content_type.is_some_and(is_json) {
            return Err(Problem::content_type());
        }
        Ok(route)
    }

    fn has_name(&self, host: &[u8]) -> bool {
        let name = without_port(host);
        self.names.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }

    /// Refuses a host that is not one of this server.
    fn check_host(&self, head: &Head<'_>) -> Result<(), Problem> {
        if head.host.is_none_or(|host| self.has_name(host)) {
            return Ok(());
        }
        let text =
            "host: is not a name of this server; send the request to localhost, or add the name to `hosts`";
        Err(Problem::new(FOREIGN, text))
    }

    /// Refuses a request from a page of another site.
    fn check_page(&self, head: &Head<'_>) -> Result<(), Problem> {
        let is_addressed = |host: &[u8]| head.host.is_some_and(|own| own.eq_ignore_ascii_case(host));
        let is_own = |host: &[u8]| self.has_name(host) || (!self.is_loopback && is_addressed(host));
        let text = if !head.origin.is_none_or(|origin| host_of(origin).is_some_and(is_own)) {
            "origin: is a page of another site; send the request from a program, or add its host to `hosts`"
        } else if !head.fetch_site.is_none_or(|site| matches!(site, b"none" | b"same-origin")) {
            // A page may omit the origin if it does not read the answer, and the request alone would charge.
            "sec-fetch-site: is not the same origin; send the request from a program"
        } else {
            return Ok(());
        };
        Err(Problem::new(FOREIGN, text))
    }
}

/// The scopes of the caller: all of them if the server has no tokens.
fn check_token(tokens: &Tokens, head: &Head<'_>) -> Result<Scopes, Problem> {
    if tokens.is_empty() {
        return Ok(Scopes::ALL);
    }
    let text = match head.authorization.map(bearer) {
        Some(sent) => match sent.and_then(|sent| tokens.scopes_of(sent)) {
            Some(scopes) => return Ok(scopes),
            None => "authorization: is not a valid token; send `authorization: Bearer TOKEN`",
        },
        None => "authorization: is missing; send `authorization: Bearer TOKEN`",
    };
    Err(Problem::unauthorized(text))
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
mod tests;
