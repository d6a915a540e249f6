//! A line on a terminal that is drawn over itself, and gone in the end.

use std::io::{self, Write};

use rustix::termios::tcgetwinsize;

/// Where nobody says how wide the terminal is.
const COLUMNS: usize = 80;
/// To the beginning of the line, and clear it to its end.
const CLEAR: &str = "\r\x1b[K";

/// The line.
#[derive(Debug)]
pub(super) struct Progress<W: Write> {
    pub(super) out: W,
    /// Elsewhere nothing is shown.
    pub(super) on_terminal: bool,
    pub(super) is_drawn: bool,
}

impl<W: Write> Progress<W> {
    /// Draws the line, cut to the width of the terminal: a second line could not be drawn over. Says whether it is
    /// seen.
    pub(super) fn draw(&mut self, line: impl FnOnce() -> String) -> bool {
        if self.on_terminal {
            let width = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
            let width = if width == 0 { COLUMNS } else { width };
            let line: String = line().chars().take(width - 1).collect();
            // Whoever cannot be shown a line waits all the same.
            let _ = write!(self.out, "{CLEAR}{line}").and_then(|()| self.out.flush());
            self.is_drawn = true;
        }
        self.on_terminal
    }

    /// Leaves nothing behind.
    pub(super) fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(self.out, "{CLEAR}").and_then(|()| self.out.flush());
        }
    }
}
