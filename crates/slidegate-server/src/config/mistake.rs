//! What is wrong with a configuration file, and where.

use std::fmt;

use serde_saphyr::Location;
use thiserror::Error;

use crate::service::escaped;

/// One mistake: its place, and a text that names the field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Line and column, counted from 1; none for a file that cannot be read, which has no lines.
    at: Option<(u64, u64)>,
    text: String,
}

impl Mistake {
    /// A mistake at a place of the file; where the parser knows none, at its start.
    pub(super) fn at(location: Location, text: &str) -> Self {
        if location == Location::UNKNOWN {
            return Self::at_start(text);
        }
        Self { at: Some((location.line(), location.column())), text: escaped(text) }
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

/// Everything that is wrong with a configuration file, a line per mistake, in the order of the file.
#[derive(Debug, Error)]
pub(crate) struct ConfigError {
    file: String,
    mistakes: Vec<Mistake>,
}

impl ConfigError {
    /// `mistakes` are at least one.
    pub(super) fn new(file: &str, mut mistakes: Vec<Mistake>) -> Self {
        assert!(!mistakes.is_empty(), "a file without mistakes is no error");
        mistakes.sort_by_key(|mistake| mistake.at);
        Self { file: escaped(file), mistakes }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { at, text }) in self.mistakes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            match at {
                Some((line, column)) => write!(f, "{separator}{}:{line}:{column}: {text}", self.file)?,
                None => write!(f, "{separator}{}: {text}", self.file)?,
            }
        }
        Ok(())
    }
}
