//! Findings: mistakes in a configuration and warnings about it, each with its source.

use std::fmt;

use serde_saphyr::Location;
use thiserror::Error;

use crate::text::escaped;

/// Where a setting or a rule was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A flag (`--http`) or an environment variable, by name.
    Name(String),
    /// A file, with line and column from 1; `None` for a file that cannot be read.
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
pub(crate) struct Finding {
    pub(crate) source: Source,
    pub(crate) text: String,
}

impl Finding {
    pub(super) fn new(source: Source, text: &str) -> Self {
        Self { source, text: escaped(text) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.text)
    }
}

/// The findings of one file so far.
#[derive(Debug)]
pub(super) struct Findings {
    file: String,
    pub(super) list: Vec<Finding>,
}

impl Findings {
    pub(super) fn of(file: &str) -> Self {
        Self { file: escaped(file), list: Vec::new() }
    }

    /// Adds a finding at a position; an unknown position means the start of the file.
    pub(super) fn add(&mut self, at: Location, text: &str) {
        self.list.push(Finding::new(self.source(at), text));
    }

    pub(super) fn source(&self, at: Location) -> Source {
        let place = if at == Location::UNKNOWN { (1, 1) } else { (at.line(), at.column()) };
        Source::File(self.file.clone(), Some(place))
    }

    /// `value`, if there are no findings.
    pub(super) fn into_result<T>(mut self, value: T) -> Result<T, ConfigError> {
        self.list.sort_by(|one, other| one.source.cmp(&other.source));
        if self.list.is_empty() { Ok(value) } else { Err(ConfigError { mistakes: self.list }) }
    }
}

/// All mistakes of a configuration, one per line, ordered by source and position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) struct ConfigError {
    /// At least one.
    pub(crate) mistakes: Vec<Finding>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.mistakes.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}
