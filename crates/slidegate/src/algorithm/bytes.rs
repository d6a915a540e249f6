//! Variable-length integers (LEB128: seven bits per byte, the lowest first), and a reader for untrusted bytes.

use thiserror::Error;

/// Why bytes cannot be read as a state.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BytesError {
    /// A newer version wrote them.
    #[error(
        "a state of version {version}, and this program knows versions up to {known}; use the newer program"
    )]
    Newer {
        /// The version in the bytes.
        version: u8,
        /// The latest version that this program reads.
        known: u8,
    },
    /// The bytes are damaged, or were never a state.
    #[error("damaged bytes: {what}")]
    Damaged {
        /// What is wrong with them.
        what: &'static str,
    },
}

impl BytesError {
    pub(crate) fn damaged(what: &'static str) -> Self {
        Self::Damaged { what }
    }
}

/// Appends a number.
#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut number = number;
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads numbers from the bytes that are left.
#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, BytesError> {
        let (&byte, left) = self.0.split_first().ok_or(BytesError::damaged("they end too early"))?;
        self.0 = left;
        Ok(byte)
    }

    pub(crate) fn number(&mut self) -> Result<u64, BytesError> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(BytesError::damaged("a number of more than 64 bits"))
    }

    /// A number that is at most `most`; `what` describes the damage if it is larger.
    pub(crate) fn at_most(&mut self, most: u64, what: &'static str) -> Result<u64, BytesError> {
        let number = self.number()?;
        if number <= most { Ok(number) } else { Err(BytesError::damaged(what)) }
    }

    /// A number of items, each of which takes a byte at least.
    pub(crate) fn count(&mut self) -> Result<usize, BytesError> {
        let number = self.number()?;
        let count = usize::try_from(number).ok().filter(|&count| count <= self.0.len());
        count.ok_or(BytesError::damaged("more items than bytes"))
    }

    /// Checks that no bytes are left.
    pub(crate) fn end(&self) -> Result<(), BytesError> {
        if self.0.is_empty() { Ok(()) } else { Err(BytesError::damaged("more bytes than a state has")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for number in [0, 1, 127, 128, 1 << 31, (1 << 53) + 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.number(), Ok(number));
            assert_eq!(reader.end(), Ok(()));
            assert!(Reader::new(&bytes[..bytes.len() - 1]).number().is_err(), "{number}, cut short");
        }
        assert!(Reader::new(&[0xFF; 11]).number().is_err());
        let wide = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert!(Reader::new(&wide).number().is_err(), "65 bits");
    }
}
