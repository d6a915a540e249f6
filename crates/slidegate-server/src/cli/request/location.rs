//! Where states live: the flag's word first, then that of the environment, of the configuration, and the user's own file.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use slidegate_stores::{StoreUrl, UrlError};

use crate::config::Config;
use crate::text::{escaped, excerpt};

const FORM: &str = "write http://HOST:PORT";
/// The variable that names the store.
const VARIABLE: &str = "SLIDEGATE_STORE";

/// Who is asked.
#[derive(Debug, Clone)]
pub(in crate::cli) enum Location {
    /// The file of this user, in a directory that is made where there is none.
    Own(PathBuf),
    /// A store.
    Store(StoreUrl),
    /// A server, which has a store.
    Server(ServerUrl),
}

impl Location {
    /// Reads the address of a store or a server.
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

    /// The one that was named; the file of this user if none was.
    pub(super) fn choose(flag: Option<&Self>, config: Option<&Config>) -> Result<Self> {
        let chosen = match (flag, env::var_os(VARIABLE).filter(|value| !value.is_empty())) {
            (Some(flag), _) => Some(flag.clone()),
            (None, Some(value)) => {
                let text =
                    value.to_str().with_context(|| format!("{VARIABLE}: is not UTF-8; write it as UTF-8"))?;
                Some(Self::read(text).map_err(|text| anyhow!("{VARIABLE}: {text}"))?)
            }
            (None, None) => config.and_then(Config::store).map(Self::Store),
        };
        match chosen {
            Some(Self::Store(url)) if url.kind() == "memory" => bail!(
                "store: memory forgets everything when this program ends; give sqlite:PATH, redis://HOST:PORT or \
                 http://HOST:PORT"
            ),
            Some(chosen) => Ok(chosen),
            None => Ok(Self::Own(own_file(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"))?)),
        }
    }

    /// Whether the rules are another's to know.
    pub(super) fn is_server(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// Where programs keep what should outlive them and is of no use elsewhere (the XDG base directories).
fn own_file(state_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    // A relative one is to be ignored.
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(state_home).or_else(|| absolute(home).map(|home| home.join(".local/state")));
    let Some(state) = state else {
        bail!("store: there is no HOME to keep states in; give --store sqlite:PATH, or set HOME");
    };
    Ok(state.join("slidegate/state.db"))
}

/// Makes the directory of the user's own file, for that user only.
pub(super) fn make_directory(file: &Path) -> Result<()> {
    let Some(directory) = file.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| {
        let directory = escaped(&directory.display().to_string());
        anyhow!("store: {directory} cannot be made: {error}; give --store sqlite:PATH, or set XDG_STATE_HOME")
    })
}

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
        let wrong = || format!("store: `http://{}` is not a server; {FORM}", excerpt(told));
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
    fn states_live_where_the_user_keeps_them() {
        let file = |state_home: &str, home: &str| {
            let value = |text: &str| (text != "-").then(|| OsString::from(text));
            own_file(value(state_home), value(home)).map(|path| path.display().to_string())
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
