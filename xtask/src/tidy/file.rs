//! A text file of the repository, for the rules.

use anyhow::{Context, Result};

use super::code;

/// A text file of the repository.
pub(super) struct File {
    /// From the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments and literals blanked if it is Rust; otherwise empty.
    pub(super) code: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        let mut file = Self { path: path.into(), text: text.into(), code: String::new() };
        if file.is_rust() {
            file.code = code::blanked(text);
        }
        file
    }

    /// `None` if it is not text, or if a tool writes it.
    pub(super) fn read(path: &str) -> Result<Option<Self>> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {path}"))?;
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        Ok(text.filter(|_| path != "Cargo.lock").map(|text| Self::new(path, &text)))
    }

    pub(super) fn is_rust(&self) -> bool {
        self.has_extension(&["rs"])
    }

    pub(super) fn has_extension(&self, extensions: &[&str]) -> bool {
        self.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }

    /// Lines of text with their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.text)
    }

    /// Lines of code with their numbers.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(&self.code)
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}
