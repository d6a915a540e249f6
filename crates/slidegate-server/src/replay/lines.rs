//! Lines of bounded length.

use std::io::{self, BufRead, BufReader, Read};

/// Longest line of a trace, in bytes, its line break not counted.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// One line, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// More than [`LINE_BYTES_MAX`]: it was skipped, not kept.
    TooLong,
}

/// Cuts input into lines and never holds more than one, nor more of it than the longest line allowed.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    at_start: bool,
}

/// What some editors put before the first character of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl<R: Read> Lines<R> {
    pub(super) fn new(input: BufReader<R>) -> Self {
        Self { input, line: Vec::new(), at_start: true }
    }

    /// Whether the next line, or the rest of it, has to be waited for.
    pub(super) fn would_wait(&self) -> bool {
        !self.input.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the input. A last line needs no line break.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let (mut begun, mut too_long) = (false, false);
        loop {
            let chunk = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                break;
            }
            begun = true;
            let line_break = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..line_break.unwrap_or(chunk.len())];
            too_long |= self.line.len() + part.len() > LINE_BYTES_MAX;
            if !too_long {
                self.line.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(line_break.is_some());
            self.input.consume(consumed);
            if line_break.is_some() {
                break;
            }
        }
        let at_start = std::mem::replace(&mut self.at_start, false);
        let marked = Some(self.line.as_slice()).filter(|_| at_start);
        let line = marked.and_then(|line| line.strip_prefix(BYTE_ORDER_MARK)).unwrap_or(&self.line);
        Ok(begun.then_some(if too_long { Line::TooLong } else { Line::Whole(line) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as text, however small the reads.
    fn lines(text: &[u8], read_bytes: usize) -> Vec<String> {
        let mut lines = Lines::new(BufReader::with_capacity(read_bytes, text));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        found
    }

    #[test]
    fn lines_do_not_depend_on_reads() {
        for read_bytes in [1, 2, 3, 64] {
            assert_eq!(lines(b"one\n\ntwo\nthree", read_bytes), ["one", "", "two", "three"]);
            assert_eq!(lines(b"one\n", read_bytes), ["one"]);
            assert_eq!(lines(b"\n", read_bytes), [""]);
            assert_eq!(lines(b"", read_bytes), [""; 0]);
            assert_eq!(lines(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", read_bytes), ["one", "\u{feff}two"]);
        }
    }

    #[test]
    fn part_of_a_line_is_waited_for() {
        let mut lines = Lines::new(BufReader::with_capacity(6, &b"one\ntwo\n"[..]));
        assert!(lines.would_wait(), "nothing is read yet");
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"one")));
        assert!(lines.would_wait(), "two letters of three are at hand");
    }

    #[test]
    fn a_line_too_long_is_skipped_and_not_kept() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let text = format!("{longest}\n{longest}y\nafter\n{longest}{longest}");
        assert_eq!(lines(text.as_bytes(), 4096), [longest.as_str(), "too long", "after", "too long"]);
        let mut skipping = Lines::new(BufReader::new(io::repeat(b'x').take(64 << 20)));
        assert_eq!(skipping.next().unwrap(), Some(Line::TooLong));
        assert!(skipping.line.capacity() <= 2 * LINE_BYTES_MAX);
    }
}
