//! Keys: who is limited.

mod owned;

use std::fmt;

use thiserror::Error;

pub use owned::{IntoKey, OwnedKey};

/// Longest key, in bytes; of a key with a tag, both together.
pub const KEY_BYTES_MAX: usize = 512;

/// Who is limited: a client address, a user, a credential. 1 to 512 bytes of text without control
/// characters, bidirectional overrides, or line and paragraph separators, borrowed from the caller. With a tag it is
/// borrowed from an [`OwnedKey`].
///
/// ```
/// use slidegate::Key;
///
/// let key = Key::new("yt:quota:key1")?;
/// assert_eq!(key.as_str(), "yt:quota:key1");
/// assert!(Key::new("").is_err());
/// # Ok::<(), slidegate::KeyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// Checks `text` and wraps it.
    #[inline]
    pub fn new(text: &'a str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong { bytes: text.len() });
        }
        // Nearly all keys are printable ASCII, which is checked eight bytes at a time.
        if is_printable_ascii(text.as_bytes()) {
            return Ok(Self(text));
        }
        Self::of_characters(text)
    }

    /// A key from text that was checked before.
    #[inline]
    pub(crate) fn new_unchecked(text: &'a str) -> Self {
        Self(text)
    }

    #[cold]
    fn of_characters(text: &'a str) -> Result<Self, KeyError> {
        match bad_character(text) {
            Some((offset, character)) if character.is_control() => {
                Err(KeyError::Control { character, offset })
            }
            Some((offset, character)) => Err(KeyError::Invisible { character, offset }),
            None => Ok(Self(text)),
        }
    }

    /// The text of the key, without its tag.
    #[must_use]
    #[inline]
    pub fn as_str(self) -> &'a str {
        if self.is_plain() { self.0 } else { self.text_of_parts() }
    }

    /// The text that identifies its states among those of a rule: the key itself or, if it has a tag or is a shard, a
    /// text that is no key. For stores; users are shown [`Key::as_str`] and [`Key::tag`].
    #[must_use]
    #[inline]
    pub fn identity(self) -> &'a str {
        self.0
    }
}

/// The first character that a key or tag may not have, with its offset.
fn bad_character(text: &str) -> Option<(usize, char)> {
    let is_refused = |character: char| character.is_control() || changes_display(character);
    text.char_indices().find(|(_, character)| is_refused(*character))
}

/// Whether the character breaks the line or changes the order in which its neighbours are shown, so that two
/// keys look alike in a log: line and paragraph separators, bidirectional embeddings, overrides and isolates.
fn changes_display(character: char) -> bool {
    matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether all bytes are 0x20 to 0x7E. Eight at a time: a key is checked at every decision.
#[inline]
fn is_printable_ascii(bytes: &[u8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The high bit of a byte is set where it is above 0x7F, below 0x20, or 0x7F.
    let odd = |word: u64| (word | word.wrapping_sub(EACH * 0x20) | word.wrapping_add(EACH)) & (EACH * 0x80);
    let word = |chunk: &[u8; 8]| odd(u64::from_le_bytes(*chunk));
    match (bytes.first_chunk(), bytes.last_chunk()) {
        // The first and the last eight may overlap; most keys have no more between them.
        (Some(first), Some(last)) => {
            let ends = word(first) | word(last);
            let between = bytes.get(8..bytes.len() - 8).unwrap_or_default();
            ends == 0 && (between.is_empty() || between.iter().all(|byte| (0x20..0x7F).contains(byte)))
        }
        _ => bytes.iter().all(|byte| (0x20..0x7F).contains(byte)),
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has no characters.
    #[error("key: is empty; name who is limited, for example a user or a client address")]
    Empty,
    /// The text is longer than [`KEY_BYTES_MAX`].
    #[error("key: has {bytes} bytes, at most {KEY_BYTES_MAX} are allowed; shorten it or use a hash of it")]
    TooLong {
        /// Length of the text.
        bytes: usize,
    },
    /// The text holds a control character, which logs and protocols may garble.
    #[error("key: has the control character {character:?} at byte {}; remove or percent-encode it", *offset + 1)]
    Control {
        /// The character.
        character: char,
        /// Its offset in bytes from the start; the text counts from 1.
        offset: usize,
    },
    /// The text holds a bidirectional override or a line separator, which would disguise it in logs.
    #[error(
        "key: has the invisible character {character:?} at byte {}, which changes how text is displayed; \
         remove or percent-encode it",
        *offset + 1
    )]
    Invisible {
        /// The character.
        character: char,
        /// Its offset in bytes from the start; the text counts from 1.
        offset: usize,
    },
    /// The tag has no characters.
    #[error("tag: is empty; leave it out, or name the group of keys that are charged together")]
    TagEmpty,
    /// The tag and the key together are longer than [`KEY_BYTES_MAX`].
    #[error(
        "tag: has {bytes} bytes together with the key, at most {KEY_BYTES_MAX} are allowed; shorten it or use a hash of \
         it"
    )]
    TagTooLong {
        /// Length of both.
        bytes: usize,
    },
    /// The tag holds a character that a key may not hold either.
    #[error(
        "tag: has the character {character:?} at byte {}, which logs and protocols may garble; remove or percent-encode it",
        *offset + 1
    )]
    TagCharacter {
        /// The character.
        character: char,
        /// Its offset in bytes from the start; the text counts from 1.
        offset: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_addresses_names_and_unicode() {
        for text in ["a", "203.0.113.45", "2001:db8::/64", "{braces}", "käse 🧀", &"k".repeat(512)] {
            assert_eq!(Key::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn refuses_empty_overlong_and_control_characters() {
        assert_eq!(Key::new(""), Err(KeyError::Empty));
        let error = Key::new(&"k".repeat(513)).unwrap_err();
        assert_eq!(error, KeyError::TooLong { bytes: 513 });
        let text = "key: has 513 bytes, at most 512 are allowed; shorten it or use a hash of it";
        assert_eq!(error.to_string(), text);
        assert_eq!(Key::new("a\0b"), Err(KeyError::Control { character: '\0', offset: 1 }));
        assert_eq!(Key::new("line\n"), Err(KeyError::Control { character: '\n', offset: 4 }));
    }

    /// A key with such a character reads like the key of another client in a log.
    #[test]
    fn refuses_characters_that_change_how_text_is_displayed() {
        let refused = ('\u{2028}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        for character in refused {
            let text = format!("k\u{e4}se{character}alice");
            assert_eq!(Key::new(&text), Err(KeyError::Invisible { character, offset: 5 }), "{text:?}");
        }
        for neighbour in ['\u{2027}', '\u{202f}', '\u{2065}', '\u{206a}', '\u{200d}'] {
            assert!(Key::new(&format!("a{neighbour}")).is_ok(), "{neighbour:?}");
        }
        assert_eq!(
            Key::new("bob\u{202e}ecila").unwrap_err().to_string(),
            "key: has the invisible character '\\u{202e}' at byte 4, which changes how text is displayed; remove or \
             percent-encode it"
        );
    }

    /// The result for a byte does not depend on its position.
    #[test]
    fn checking_eight_bytes_at_a_time_agrees_with_checking_each_byte() {
        for length in 1..=25 {
            for position in 0..length {
                for byte in 0..=0x7F {
                    let mut bytes = vec![b'~'; length];
                    bytes[position] = byte;
                    let text = String::from_utf8(bytes).unwrap();
                    assert_eq!(Key::new(&text).is_ok(), (0x20..0x7F).contains(&byte), "{text:?}");
                }
            }
        }
    }
}
