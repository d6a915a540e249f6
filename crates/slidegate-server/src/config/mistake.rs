//! What is wrong with a configuration, or unwise about it, and where.

use std::fmt;

use serde_saphyr::Location;
use thiserror::Error;

use crate::text::escaped;

/// Where something was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// An argument of the command line (`--http`) or a variable of the environment, by its name.
    Name(String),
    /// A file, with line and column counted from 1; none for a file that cannot be read, which has no lines.
    File(String, Option<(u64, u64)>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) | Self::File(name, None) => f.write_str(name),
            Self::File(name, Some((line, column))) => write!(f, "{name}:{line}:{column}"),
        }
    }
}

/// A mistake or a warning with its source; the text names the field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) source: Source,
    pub(crate) text: String,
}

impl Found {
    pub(super) fn new(source: Source, text: &str) -> Self {
        Self { source, text: escaped(text) }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.text)
    }
}

/// What was found in one file so far.
#[derive(Debug)]
pub(super) struct Findings {
    file: String,
    pub(super) found: Vec<Found>,
}

impl Findings {
    pub(super) fn of(file: &str) -> Self {
        Self { file: escaped(file), found: Vec::new() }
    }

    /// Adds what was found at a place of the file; where the parser knows none, at its start.
    pub(super) fn add(&mut self, at: Location, text: &str) {
        self.found.push(Found::new(self.source(at), text));
    }

    pub(super) fn source(&self, at: Location) -> Source {
        let place = if at == Location::UNKNOWN { (1, 1) } else { (at.line(), at.column()) };
        Source::File(self.file.clone(), Some(place))
    }

    /// `value`, if nothing was found.
    pub(super) fn into_result<T>(mut self, value: T) -> Result<T, ConfigError> {
        self.found.sort_by(|one, other| one.source.cmp(&other.source));
        if self.found.is_empty() { Ok(value) } else { Err(ConfigError { mistakes: self.found }) }
    }
}

/// Everything that is wrong with a configuration, a line per mistake, in the order of its sources and of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) struct ConfigError {
    /// At least one.
    pub(crate) mistakes: Vec<Found>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.mistakes.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}
