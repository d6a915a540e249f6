//! What users write, inside names and patterns.

/// As it may stand in a name.
pub(super) fn escape(bytes: &[u8], name: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'%' => name.extend_from_slice(b"%25"),
            b'{' => name.extend_from_slice(b"%7B"),
            b'}' => name.extend_from_slice(b"%7D"),
            _ => name.push(byte),
        }
    }
}

/// The other way round; nothing if that was not escaped by us.
pub(super) fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'%', [b'2', b'5', after @ ..]) => (b'%', after),
            (b'%', [b'7', b'B', after @ ..]) => (b'{', after),
            (b'%', [b'7', b'D', after @ ..]) => (b'}', after),
            (b'%' | b'{' | b'}', _) => return None,
            (&byte, after) => (byte, after),
        };
        plain.push(byte);
        rest = after;
    }
    Some(plain)
}

/// As SCAN's MATCH takes it literally.
pub(super) fn escape_glob(bytes: &[u8], pattern: &mut Vec<u8>) {
    for &byte in bytes {
        if b"*?[]\\^-".contains(&byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
}
