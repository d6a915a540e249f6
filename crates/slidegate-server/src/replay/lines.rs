//! Cuts input into lines of bounded length.

use std::io::{self, BufRead, BufReader, Read};

use crate::text::BYTE_ORDER_MARK;

/// Longest line of a trace, in bytes, its line break not counted.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// One line, without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceLine<'a> {
    /// The complete line.
    Whole(&'a [u8]),
    /// A line of more than [`LINE_BYTES_MAX`] bytes, which was skipped.
    TooLong,
}

/// Cuts input into lines, and holds one line of at most [`LINE_BYTES_MAX`] bytes at a time.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    at_start: bool,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: BufReader<R>) -> Self {
        Self { input, line: Vec::new(), at_start: true }
    }

    /// Whether the next line is not completely buffered.
    pub(super) fn would_wait(&self) -> bool {
        !self.input.buffer().contains(&b'\n')
    }

    /// The next line; `None` at the end of the input. A last line needs no line break.
    pub(super) fn next(&mut self) -> io::Result<Option<TraceLine<'_>>> {
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
        Ok(begun.then_some(if too_long { TraceLine::TooLong } else { TraceLine::Whole(line) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines as text, read `read_bytes` at a time.
    fn lines(text: &[u8], read_bytes: usize) -> Vec<String> {
        let mut lines = Lines::new(BufReader::with_capacity(read_bytes, text));
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                TraceLine::Whole(line) => String::from_utf8(line.to_vec()).unwrap(),
                TraceLine::TooLong => "too long".to_owned(),
            });
        }
        found
    }

    #[test]
    fn lines_do_not_depend_on_the_size_of_reads() {
        for read_bytes in [1, 2, 3, 64] {
            assert_eq!(lines(b"one\n\ntwo\nthree", read_bytes), ["one", "", "two", "three"]);
            assert_eq!(lines(b"one\n", read_bytes), ["one"]);
            assert_eq!(lines(b"\n", read_bytes), [""]);
            assert_eq!(lines(b"", read_bytes), [""; 0]);
            assert_eq!(lines(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", read_bytes), ["one", "\u{feff}two"]);
        }
    }

    #[test]
    fn an_incomplete_line_would_wait() {
        let mut lines = Lines::new(BufReader::with_capacity(6, &b"one\ntwo\n"[..]));
        assert!(lines.would_wait(), "nothing is read yet");
        assert_eq!(lines.next().unwrap(), Some(TraceLine::Whole(b"one")));
        assert!(lines.would_wait(), "two letters of three are buffered");
    }

    #[test]
    fn a_line_too_long_is_skipped_without_buffering_it() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let text = format!("{longest}\n{longest}y\nafter\n{longest}{longest}");
        assert_eq!(lines(text.as_bytes(), 4096), [longest.as_str(), "too long", "after", "too long"]);
        let mut skipping = Lines::new(BufReader::new(io::repeat(b'x').take(64 << 20)));
        assert_eq!(skipping.next().unwrap(), Some(TraceLine::TooLong));
        assert!(skipping.line.capacity() <= 2 * LINE_BYTES_MAX);
    }
}
