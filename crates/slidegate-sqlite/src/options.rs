//! Options of a store in a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use slidegate::rate::parse_window;
use thiserror::Error;

/// The default deadline of a call.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(5);
/// The longest deadline of a call.
pub const DEADLINE_MAX: Duration = Duration::from_secs(600);

/// What an answered admission survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Written and synced before the answer: it survives a power loss.
    #[default]
    Full,
    /// Written before the answer: it survives the end of the process. A power loss may lose the last admissions; the
    /// file stays consistent.
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

/// The path of the file, its durability and the default deadline.
///
/// ```
/// use slidegate_sqlite::{Durability, SqliteOptions};
/// use std::path::Path;
/// use std::time::Duration;
///
/// let options = SqliteOptions::from_url("sqlite:/var/lib/quota.db?durability=normal&deadline=2s")?;
/// assert_eq!(options.path(), Path::new("/var/lib/quota.db"));
/// let same = SqliteOptions::new("/var/lib/quota.db").durability(Durability::Normal);
/// assert_eq!(options, same.deadline(Duration::from_secs(2))?);
///
/// let error = SqliteOptions::from_url("sqlite:quota.db?durability=none").unwrap_err();
/// assert_eq!(error.to_string(), "store: the durability `none` is unknown; give `full` or `normal`");
/// # Ok::<(), slidegate_sqlite::OptionsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    path: PathBuf,
    durability: Durability,
    /// `None` for the default.
    deadline: Option<Duration>,
}

impl SqliteOptions {
    /// The default options for the file at that path.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), durability: Durability::default(), deadline: None }
    }

    /// Parses a URL: `sqlite:PATH?durability=normal&deadline=2s`, also `sqlite:///absolute/path`. Both parameters may be left
    /// out. A question mark or a percent sign in the path is written `%3F` or `%25`.
    pub fn from_url(url: &str) -> Result<Self, OptionsError> {
        let rest = url.strip_prefix("sqlite:").ok_or_else(|| OptionsError::Scheme { url: shortened(url) })?;
        let (path, parameters) = rest.split_once('?').map_or((rest, None), |(path, some)| (path, Some(some)));
        let path = match path.strip_prefix("//") {
            Some(absolute) if absolute.starts_with('/') => absolute,
            Some(host) => {
                let host = host.split('/').next().unwrap_or(host);
                // The part before `@` may hold a password.
                return Err(OptionsError::Host { host: shortened(host.rsplit('@').next().unwrap_or(host)) });
            }
            None => path,
        };
        let path = percent_decoded(path).ok_or_else(|| OptionsError::Percent { path: shortened(path) })?;
        if path.is_empty() {
            return Err(OptionsError::NoPath);
        }
        let mut options = Self::new(path);
        for parameter in parameters.into_iter().flat_map(|all| all.split('&')).filter(|one| !one.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "durability" => options.durability = durability_of(value)?,
                "deadline" => options.deadline = Some(deadline_of(value)?),
                _ => return Err(OptionsError::Parameter { name: shortened(name) }),
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

    /// How long a call may wait for the file; 5 s by default, from 1 ms to [`DEADLINE_MAX`].
    pub fn deadline(mut self, deadline: Duration) -> Result<Self, OptionsError> {
        self.deadline = Some(checked(deadline).ok_or_else(|| out_of_range(&format!("{deadline:?}")))?);
        Ok(self)
    }

    /// The same, unless a deadline was given before, by the URL or by [`SqliteOptions::deadline`].
    pub fn deadline_unless_given(self, deadline: Duration) -> Result<Self, OptionsError> {
        if self.deadline.is_some() { Ok(self) } else { self.deadline(deadline) }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn given_durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn deadline_or_default(&self) -> Duration {
        self.deadline.unwrap_or(DEADLINE_DEFAULT)
    }
}

fn durability_of(text: &str) -> Result<Durability, OptionsError> {
    let known = [Durability::Full, Durability::Normal].into_iter().find(|one| one.name() == text);
    known.ok_or_else(|| OptionsError::Durability { text: shortened(text) })
}

fn deadline_of(text: &str) -> Result<Duration, OptionsError> {
    parse_window(text).and_then(checked).ok_or_else(|| out_of_range(text))
}

/// The deadline, if it is in the range of deadlines.
fn checked(deadline: Duration) -> Option<Duration> {
    (Duration::from_millis(1)..=DEADLINE_MAX).contains(&deadline).then_some(deadline)
}

fn out_of_range(text: &str) -> OptionsError {
    OptionsError::Deadline { text: shortened(text) }
}

/// Decodes percent-encoding; `None` if it is malformed.
fn percent_decoded(path: &str) -> Option<OsString> {
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
#[expect(clippy::unnecessary_wraps, reason = "on other systems not all bytes are a path")]
fn os_text(bytes: Vec<u8>) -> Option<OsString> {
    Some(std::os::unix::ffi::OsStringExt::from_vec(bytes))
}

#[cfg(not(unix))]
fn os_text(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}

/// An invalid URL or option.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The scheme is not `sqlite:`.
    #[error(
        "store: `{url}` does not begin with `sqlite:`; give sqlite:PATH, for example sqlite:/var/lib/quota.db"
    )]
    Scheme {
        /// The given text.
        url: String,
    },
    /// A host in the URL.
    #[error(
        "store: `{host}` would be another machine, and the file must be on this one; give sqlite:PATH or \
         sqlite:///ABSOLUTE/PATH"
    )]
    Host {
        /// The host.
        host: String,
    },
    /// The URL has no path.
    #[error("store: the URL names no file; give sqlite:PATH, for example sqlite:/var/lib/quota.db")]
    NoPath,
    /// Malformed percent-encoding.
    #[error(
        "store: `{path}` has a percent sign that is not followed by two hexadecimal digits; write %25 for it"
    )]
    Percent {
        /// The path.
        path: String,
    },
    /// An unknown parameter.
    #[error("store: the parameter `{name}` is unknown; the URL may have `durability` and `deadline`")]
    Parameter {
        /// Its name.
        name: String,
    },
    /// An unknown durability.
    #[error("store: the durability `{text}` is unknown; give `full` or `normal`")]
    Durability {
        /// The given text.
        text: String,
    },
    /// A deadline out of range.
    #[error(
        "store: the deadline `{text}` is not a duration from 1ms to 10m; write a number with a unit, such as 2s"
    )]
    Deadline {
        /// The given text.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_percent_decoded() {
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
    fn deadlines_out_of_range_are_refused() {
        let options = || SqliteOptions::new("quota.db");
        for (deadline, text) in [
            (Duration::ZERO, "`0ns`"),
            (Duration::from_micros(999), "`999\u{b5}s`"),
            (DEADLINE_MAX + Duration::from_nanos(1), "`600.000000001s`"),
        ] {
            let error = options().deadline(deadline).unwrap_err();
            assert!(
                matches!(error, OptionsError::Deadline { .. }) && error.to_string().contains(text),
                "{error}"
            );
            assert_eq!(options().deadline_unless_given(deadline).unwrap_err(), error);
        }
        let longest = options().deadline(DEADLINE_MAX).unwrap();
        assert_eq!(longest.deadline_or_default(), DEADLINE_MAX);
        assert_eq!(longest.clone().deadline_unless_given(Duration::from_secs(1)).unwrap(), longest);
    }

    #[test]
    fn errors_name_the_part_that_is_wrong() {
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
