//! Parts of a path, percent-encoded.

const BAD_PERCENT: &str = "path: has a % without two hexadecimal digits; write % itself as %25";

/// The text that a part of a path stands for; the error says what is wrong with it.
pub(super) fn decode(part: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let Some((&[high, low], after)) = rest.split_first_chunk() else {
            return Err(BAD_PERCENT);
        };
        let (Some(high), Some(low)) = (char::from(high).to_digit(16), char::from(low).to_digit(16)) else {
            return Err(BAD_PERCENT);
        };
        rest = after;
        bytes.push(u8::try_from(high << 4 | low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| "path: is not UTF-8; percent-encode UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_decoded() {
        assert_eq!(decode("alice"), Ok("alice".into()));
        assert_eq!(decode("yt%3Aquota%2Fkey1%25"), Ok("yt:quota/key1%".into()));
        assert_eq!(decode("k%c3%A4se+"), Ok("käse+".into()));
        for (part, start) in [
            ("%", "path: has a %"),
            ("a%4", "path: has a %"),
            ("%zz", "path: has a %"),
            ("%ff", "path: is not UTF-8"),
        ] {
            assert!(decode(part).unwrap_err().starts_with(start), "{part}");
        }
    }
}
