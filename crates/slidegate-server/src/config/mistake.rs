//! What is wrong with a configuration file, and where.

use std::fmt;

use serde_saphyr::Location;
use thiserror::Error;

/// One mistake: its place, where it is known, and a text that names the field and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Line and column, counted from 1.
    at: Option<(u64, u64)>,
    text: String,
}

impl Mistake {
    /// A mistake at a place of the file.
    pub(super) fn at(location: Location, text: impl Into<String>) -> Self {
        let known = location != Location::UNKNOWN;
        Self { at: known.then(|| (location.line(), location.column())), text: text.into() }
    }

    /// A mistake of the file as a whole.
    pub(super) fn of_file(text: impl Into<String>) -> Self {
        Self { at: None, text: text.into() }
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
        Self { file: file.to_owned(), mistakes }
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
