//! What is wrong with a configuration, or unwise about it, and where.

use std::fmt;

use serde_saphyr::Location;
use thiserror::Error;

use crate::text::escaped;

/// Where something was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// An argument of the command line, by its name: `--http`.
    Flag(String),
    /// A variable of the environment.
    Variable(String),
    /// A file, with line and column counted from 1; none for a file that cannot be read, which has no lines.
    File(String, Option<(u64, u64)>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) | Self::File(name, None) => f.write_str(name),
            Self::File(name, Some((line, column))) => write!(f, "{name}:{line}:{column}"),
        }
    }
}

/// One mistake of a file: its place, and a text that names the field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    at: Option<(u64, u64)>,
    text: String,
}

impl Mistake {
    /// A mistake at a place of the file; where the parser knows none, at its start.
    pub(super) fn at(location: Location, text: &str) -> Self {
        Self { at: Some(place(location)), text: escaped(text) }
    }

    /// A mistake of the file as a whole.
    pub(super) fn at_start(text: &str) -> Self {
        Self { at: Some((1, 1)), text: escaped(text) }
    }

    /// A mistake just after the text `before`.
    pub(super) fn after(before: &str, text: &str) -> Self {
        let line_start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
        let line = before.matches('\n').count() as u64 + 1;
        let column = before[line_start..].chars().count() as u64 + 1;
        Self { at: Some((line, column)), text: escaped(text) }
    }

    /// A file that cannot be read at all.
    pub(super) fn unreadable(text: &str) -> Self {
        Self { at: None, text: escaped(text) }
    }
}

/// Line and column, from 1; what has no place is at the start.
pub(super) fn place(location: Location) -> (u64, u64) {
    if location == Location::UNKNOWN { (1, 1) } else { (location.line(), location.column()) }
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

/// Everything that is wrong with a configuration, a line per mistake, in the order of its sources and of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) struct ConfigError {
    mistakes: Vec<Found>,
}

impl ConfigError {
    /// `mistakes` of one file are at least one.
    pub(super) fn new(file: &str, mut mistakes: Vec<Mistake>) -> Self {
        mistakes.sort_by_key(|mistake| mistake.at);
        let file = escaped(file);
        let found = |Mistake { at, text }| Found { source: Source::File(file.clone(), at), text };
        Self::of(mistakes.into_iter().map(found).collect())
    }

    /// `mistakes` are at least one.
    pub(super) fn of(mistakes: Vec<Found>) -> Self {
        assert!(!mistakes.is_empty(), "what has no mistakes is no error");
        Self { mistakes }
    }

    /// At least one.
    pub(crate) fn mistakes(&self) -> &[Found] {
        &self.mistakes
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            write!(f, "{}{mistake}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
