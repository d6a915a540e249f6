//! Colours, on a terminal only.

use std::env;
use std::io::{IsTerminal, stdout};

/// Whether what goes to stdout may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colours(bool);

impl Colours {
    /// On a terminal, unless the variable `NO_COLOR` is set and not empty.
    pub(super) fn of_stdout() -> Self {
        let unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(stdout().is_terminal() && !unwanted)
    }

    /// Red and bold: a promise that was broken.
    pub(super) fn alarm(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    /// Green: a promise that holds.
    pub(super) fn calm(self, text: &str) -> String {
        self.wrap("32", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_escapes_around_the_same_text() {
        assert_eq!(Colours(true).alarm("OVER"), "\x1b[1;31mOVER\x1b[0m");
        assert_eq!(Colours(true).calm("holds"), "\x1b[32mholds\x1b[0m");
        assert_eq!(Colours(false).alarm("OVER"), "OVER");
    }
}
