//! Which file, and how it is used.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slidegate::rate::parse_window;
use thiserror::Error;

/// How long a call may wait for its turn unless it is told otherwise.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);
/// The longest that a call may wait.
pub const DEADLINE_MAX: Duration = Duration::from_secs(600);

/// What an admission survives once it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Written and synced before the answer: it survives the loss of power.
    #[default]
    Full,
    /// Written before the answer: it survives the death of the process. When power is lost, the last admissions may
    /// be forgotten; the file is sound all the same.
    Normal,
}

impl Durability {
    /// The name, as URLs spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// Which file, and how it is used.
///
/// ```
/// use slidegate_sqlite::{Durability, SqliteOptions};
/// use std::path::Path;
/// use std::time::Duration;
///
/// let options = SqliteOptions::from_url("sqlite:/var/lib/quota.db?durability=normal&deadline=2s")?;
/// assert_eq!(options.path(), Path::new("/var/lib/quota.db"));
/// let same = SqliteOptions::new("/var/lib/quota.db").durability(Durability::Normal).deadline(Duration::from_secs(2));
/// assert_eq!(options, same);
///
/// let error = SqliteOptions::from_url("sqlite:quota.db?durability=none").unwrap_err();
/// assert_eq!(error.to_string(), "store: the durability `none` is unknown; give `full` or `normal`");
/// # Ok::<(), slidegate_sqlite::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    path: PathBuf,
    durability: Durability,
    /// The default where nobody has said otherwise.
    deadline: Option<Duration>,
}

impl SqliteOptions {
    /// Of the file at that path, which is created where there is none.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::default(), deadline: None }
    }

    /// Of a URL: `sqlite:PATH?durability=normal&deadline=2s`, also `sqlite:///absolute/path`. Both parameters may be left
    /// out. A question mark or a percent sign in the path is written `%3F` or `%25`.
    pub fn from_url(url: &str) -> Result<Self, OptionsError> {
        let rest = url.strip_prefix("sqlite:").ok_or_else(|| OptionsError::Scheme { url: shown(url) })?;
        let (path, parameters) = rest.split_once('?').map_or((rest, None), |(path, some)| (path, Some(some)));
        let path = match path.strip_prefix("//") {
            Some(absolute) if absolute.starts_with('/') => absolute,
            Some(host) => {
                let host = host.split('/').next().unwrap_or(host);
                // What stands before the sign is a password.
                return Err(OptionsError::Host { host: shown(host.rsplit('@').next().unwrap_or(host)) });
            }
            None => path,
        };
        let path = decoded(path).ok_or_else(|| OptionsError::Percent { path: shown(path) })?;
        if path.is_empty() {
            return Err(OptionsError::NoPath);
        }
        let mut options = Self::new(path);
        for parameter in parameters.into_iter().flat_map(|all| all.split('&')).filter(|one| !one.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "durability" => options.durability = durability_of(value)?,
                "deadline" => options.deadline = Some(deadline_of(value)?),
                _ => return Err(OptionsError::Parameter { name: shown(name) }),
            }
        }
        Ok(options)
    }

    /// What an admission survives; [`Durability::Full`] by default.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long a call may wait for its turn; 5 s by default. More than [`DEADLINE_MAX`] is as that.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline.min(DEADLINE_MAX));
        self
    }

    /// The same, unless the URL or whoever made the options has said otherwise.
    #[must_use]
    pub fn deadline_unless_given(self, deadline: Duration) -> Self {
        if self.deadline.is_some() { self } else { self.deadline(deadline) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_durable(&self) -> Durability {
        self.durability
    }

    pub(crate) fn waits(&self) -> Duration {
        self.deadline.unwrap_or(DEADLINE_DEFAULT)
    }
}

fn durability_of(text: &str) -> Result<Durability, OptionsError> {
    let known = [Durability::Full, Durability::Normal].into_iter().find(|one| one.name() == text);
    known.ok_or_else(|| OptionsError::Durability { text: shown(text) })
}

fn deadline_of(text: &str) -> Result<Duration, OptionsError> {
    let range = Duration::from_millis(1)..=DEADLINE_MAX;
    let deadline = parse_window(text).filter(|deadline| range.contains(deadline));
    deadline.ok_or_else(|| OptionsError::Deadline { text: shown(text) })
}

/// What percent signs stand for, put in; `None` if one stands for nothing.
fn decoded(path: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut parts = path.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|&byte| plain && byte != 0)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    os_text(bytes)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere not all bytes are a path")]
fn os_text(bytes: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_text(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Why a store cannot be used as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Not a URL of this store.
    #[error(
        "store: `{url}` does not begin with `sqlite:`; give sqlite:PATH, for example sqlite:/var/lib/quota.db"
    )]
    Scheme {
        /// What was given.
        url: String,
    },
    /// A file on another machine.
    #[error(
        "store: `{host}` would be another machine, and the file must be on this one; give sqlite:PATH or \
         sqlite:///ABSOLUTE/PATH"
    )]
    Host {
        /// What stands in the place of a machine.
        host: String,
    },
    /// No file.
    #[error("store: the URL names no file; give sqlite:PATH, for example sqlite:/var/lib/quota.db")]
    NoPath,
    /// A percent sign that stands for nothing.
    #[error(
        "store: `{path}` has a percent sign that is not followed by two hexadecimal digits; write %25 for it"
    )]
    Percent {
        /// The path.
        path: String,
    },
    /// A parameter that nobody would read.
    #[error("store: the parameter `{name}` is unknown; the URL may have `durability` and `deadline`")]
    Parameter {
        /// Its name.
        name: String,
    },
    /// No durability of ours.
    #[error("store: the durability `{text}` is unknown; give `full` or `normal`")]
    Durability {
        /// What was given.
        text: String,
    },
    /// No time to wait, or a very long one.
    #[error(
        "store: the deadline `{text}` is no time from 1ms to 10m; give it as rates have windows, such as 2s"
    )]
    Deadline {
        /// What was given.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_as_they_are_written() {
        for (url, path) in [
            ("sqlite:quota.db", "quota.db"),
            ("sqlite:/var/quota.db", "/var/quota.db"),
            ("sqlite:///var/quota.db", "/var/quota.db"),
            ("sqlite:a%3Fb%25.db", "a?b%.db"),
            ("sqlite::memory:", ":memory:"),
        ] {
            assert_eq!(SqliteOptions::from_url(url).unwrap(), SqliteOptions::new(path), "{url}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (url, word) in [
            ("redis://localhost", "`redis://localhost`"),
            ("sqlite://server/quota.db", "`server`"),
            ("sqlite://bob:hunter2@server/quota.db", "`server`"),
            ("sqlite:", "no file"),
            ("sqlite:?deadline=1s", "no file"),
            ("sqlite:a%2", "`a%2`"),
            ("sqlite:a%+1", "`a%+1`"),
            ("sqlite:a%00", "`a%00`"),
            ("sqlite:a?mode=ro", "`mode`"),
            ("sqlite:a?durability", "``"),
            ("sqlite:a?deadline=0s", "`0s`"),
            ("sqlite:a?deadline=11m", "`11m`"),
            ("sqlite:a?deadline=soon", "`soon`"),
        ] {
            let error = SqliteOptions::from_url(url).unwrap_err().to_string();
            assert!(error.starts_with("store: ") && error.contains(word), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{url}: {error}");
        }
    }
}
