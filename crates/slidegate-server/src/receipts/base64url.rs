//! Bytes as text that URLs, headers and JSON carry unescaped: base64url without padding (RFC 4648, section 5).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// What is no digit.
const NONE: u8 = 0xFF;

/// Values by digit.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 64 {
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        {
            values[DIGITS[value] as usize] = value as u8;
        }
        value += 1;
    }
    values
};

/// Appends the text of `bytes`.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let digit = |bits: u32| DIGITS[bits as usize & 63];
    out.reserve(bytes.len().div_ceil(3) * 4);
    let (groups, rest) = bytes.as_chunks::<3>();
    for &[first, second, third] in groups {
        let bits = u32::from_be_bytes([0, first, second, third]);
        out.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), digit(bits)]);
    }
    match *rest {
        [first, second] => {
            let bits = u32::from_be_bytes([0, first, second, 0]);
            out.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12), digit(bits >> 6)]);
        }
        [first] => {
            let bits = u32::from_be_bytes([0, first, 0, 0]);
            out.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12)]);
        }
        _ => {}
    }
}

/// The bytes of a text. `None` where [`encode`] gives no such text, so that no two texts mean the same.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            let value = VALUES[usize::from(digit)];
            if value == NONE {
                return None;
            }
            bits = bits << 6 | u32::from(value);
        }
        let kept = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        let [_, whole @ ..] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        let (kept, cut) = whole.split_at(kept);
        if cut.iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The test vectors of RFC 4648 without their padding, and the two digits that differ from plain base64.
    #[test]
    fn texts_are_those_of_the_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg"),
            (b"fo", "Zm8"),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg"),
            (b"fooba", "Zm9vYmE"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xfb\xff", "-_8"),
        ] {
            assert_eq!(encoded(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
    }

    #[test]
    fn no_two_texts_mean_the_same() {
        for text in ["Zh", "Zm9", "Zg==", "Z", "Zm9v Yg", "Zm+v", "Zm/v", "Zm9vZ", "ä"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
