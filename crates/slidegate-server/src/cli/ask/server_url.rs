//! The address of a server, as users write it.

use crate::text::shown;

const FORM: &str = "write http://HOST:PORT";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ServerUrl {
    /// As written, which is what the server is called by.
    pub(super) authority: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl ServerUrl {
    /// Reads `http://HOST:PORT`; `None` if it is no address of a server at all.
    pub(super) fn read(text: &str) -> Option<Result<Self, String>> {
        if text.starts_with("https:") {
            let remedy = "ask it on http://HOST:PORT, on loopback or through a tunnel such as ssh -L";
            return Some(Err(format!("store: https is not supported; {remedy}")));
        }
        let rest = text.strip_prefix("http:")?;
        Some(Self::of_authority(rest.strip_prefix("//").unwrap_or("")))
    }

    fn of_authority(rest: &str) -> Result<Self, String> {
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        // What stands before the sign is a password, and is not repeated.
        if authority.contains('@') {
            return Err(format!(
                "store: a server takes no user and password; {FORM} and set SLIDEGATE_TOKEN"
            ));
        }
        // A question may hold a token, and is not repeated either.
        let told = rest.split(['?', '#']).next().unwrap_or(rest);
        let wrong = || format!("store: `http://{}` is not a server; {FORM}", shown(told));
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address stand in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (authority, 80),
        };
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        let good =
            |c: char| c.is_ascii_alphanumeric() || "-._".contains(c) || bracketed.is_some() && c == ':';
        if host.is_empty() || port == 0 || !host.chars().all(good) {
            return Err(wrong());
        }
        Ok(Self { authority: authority.to_owned(), host: host.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_host_and_a_port() {
        let read = |text| ServerUrl::read(text).unwrap().map(|url| (url.host, url.port));
        for (text, host, port) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://limiter.internal/", "limiter.internal", 80),
            ("http://[::1]:8080", "::1", 8080),
            ("http://[::1]", "::1", 80),
        ] {
            assert_eq!(read(text), Ok((host.to_owned(), port)), "{text}");
        }
        for text in
            ["http:", "http://", "http://:80", "http://host:0", "http://host:x", "http://a/b", "http://a b"]
        {
            assert!(read(text).unwrap_err().contains(FORM), "{text}");
        }
        assert!(read("https://host").unwrap_err().contains("ssh -L"));
        let error = read("http://bob:hunter2@host").unwrap_err();
        assert!(error.contains("SLIDEGATE_TOKEN") && !error.contains("hunter2"), "{error}");
        assert_eq!(ServerUrl::read("redis://host"), None);
    }
}
