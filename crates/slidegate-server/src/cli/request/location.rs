//! Where states live: the flag, then the environment, then the configuration, then the user's own file.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use slidegate_stores::{StoreUrl, UrlError};

use crate::config::{Config, command_store};
use crate::text::{escaped, excerpt};

const FORM: &str = "write http://HOST:PORT";
/// The environment variable of the store.
const VARIABLE: &str = "SLIDEGATE_STORE";

/// The store or server that a request goes to.
#[derive(Debug, Clone)]
pub(in crate::cli) enum StoreLocation {
    /// The user's own file; its directory is created if missing.
    UserFile(PathBuf),
    Store(StoreUrl),
    Server(ServerUrl),
}

impl StoreLocation {
    /// Parses the URL of a store or a server.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if let Some(url) = ServerUrl::read(text) {
            return url.map(Self::Server);
        }
        text.parse().map(Self::Store).map_err(|error| match error {
            UrlError::Unknown { text } => format!(
                "store: `{text}` is not available; write `sqlite:PATH`, `redis://HOST:PORT` or `http://HOST:PORT`"
            ),
            other => other.to_string(),
        })
    }

    /// The location that was given, else the user's own file.
    pub(super) fn choose(flag: Option<&Self>, config: Option<&Config>) -> Result<Self> {
        let chosen = match (flag, env::var_os(VARIABLE).filter(|value| !value.is_empty())) {
            (Some(flag), _) => Some(flag.clone()),
            (None, Some(value)) => {
                let text =
                    value.to_str().with_context(|| format!("{VARIABLE}: is not UTF-8; write it as UTF-8"))?;
                let wrong =
                    |text: String| anyhow!("{VARIABLE}: {}", text.strip_prefix("store: ").unwrap_or(&text));
                Some(Self::read(text).map_err(wrong)?)
            }
            (None, None) => config.and_then(Config::store).map(Self::Store),
        };
        match chosen {
            Some(Self::Store(url)) if url.kind() == "memory" => bail!(
                "store: memory forgets everything when this program ends; give sqlite:PATH, redis://HOST:PORT or \
                 http://HOST:PORT"
            ),
            Some(Self::Store(url)) => Ok(Self::Store(command_store(url, config, env::vars_os())?)),
            Some(chosen) => Ok(chosen),
            None => Ok(Self::UserFile(user_state_file(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?)),
        }
    }

    /// Whether it is a server, which has its own rules.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// The state file of the user, in the state directory of the XDG base directories.
fn user_state_file(state_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    // The specification says to ignore relative paths.
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(state_home).or_else(|| absolute(home).map(|home| home.join(".local/state")));
    let Some(state) = state else {
        bail!(
            "store: HOME is not set, so there is no directory for states; give --store sqlite:PATH, or set HOME"
        );
    };
    Ok(state.join("slidegate/state.db"))
}

/// Creates the directory of the user's own file, readable by that user only.
pub(super) fn make_directory(file: &Path) -> Result<()> {
    let Some(directory) = file.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
        let directory = escaped(&directory.display().to_string());
        anyhow!("store: cannot create {directory}: {error}; give --store sqlite:PATH, or set XDG_STATE_HOME")
    })
}

/// The URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ServerUrl {
    /// Host and port as written, for the `host` header.
    pub(super) authority: String,
    pub(super) host: String,
    pub(super) port: u16,
}

impl ServerUrl {
    /// Parses `http://HOST:PORT`; `None` if it is not an HTTP URL.
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
        // The text before `@` is a password, so the error does not quote it.
        if authority.contains('@') {
            return Err(format!(
                "store: a server takes no user and password; {FORM} and set SLIDEGATE_TOKEN"
            ));
        }
        // A query may contain a token, so the error does not quote it either.
        let quoted = rest.split(['?', '#']).next().unwrap_or(rest);
        let wrong = || format!("store: `http://{}` is not a server; {FORM}", excerpt(quoted));
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are inside brackets.
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
    fn the_state_file_follows_the_xdg_directories() {
        let file = |state_home: &str, home: &str| {
            let value = |text: &str| (text != "-").then(|| OsString::from(text));
            user_state_file(value(state_home), value(home)).map(|path| path.display().to_string())
        };
        let in_home = "/users/alice/.local/state/slidegate/state.db";
        assert_eq!(file("-", "/users/alice").unwrap(), in_home);
        assert_eq!(file("", "/users/alice").unwrap(), in_home);
        assert_eq!(file("state", "/users/alice").unwrap(), in_home);
        assert_eq!(file("/var/state", "-").unwrap(), "/var/state/slidegate/state.db");
        for home in ["-", "", "alice"] {
            assert!(file("-", home).unwrap_err().to_string().contains("--store sqlite:PATH"), "{home}");
        }
    }

    #[test]
    fn a_server_url_has_a_host_and_a_port() {
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
