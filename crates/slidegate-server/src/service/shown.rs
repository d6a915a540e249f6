//! What was written, as an error shows it.

/// Most characters of a text that an error repeats.
const SHOWN_MAX: usize = 64;

/// The text, cut where it would flood the error.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}
