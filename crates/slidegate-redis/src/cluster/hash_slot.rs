//! Hash slots: which part of a cluster a key belongs to.
//!
//! A slot is the CRC16 of the key, modulo 16,384. If the key has a *hash tag*, a text in braces that is not empty, only
//! the tag is hashed: the first `{`, and the first `}` after it. So keys with the same tag share a slot, and one script
//! may use all of them.

/// How many slots a cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// The polynomial of CRC16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

/// The CRC of every byte.
const CRC_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let (mut byte, mut high) = (0, 0_u16);
    while byte < table.len() {
        let (mut crc, mut bit) = (high, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
        high = high.wrapping_add(0x100);
    }
    table
};

/// The slot of a key in Redis.
pub(crate) fn hash_slot(name: &[u8]) -> u16 {
    crc16(hash_tag(name)) % SLOTS
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| crc << 8 ^ CRC_OF_BYTE[usize::from(crc >> 8 ^ u16::from(byte))])
}

/// The hashed part of a key: its hash tag, else all of it.
fn hash_tag(name: &[u8]) -> &[u8] {
    let Some(open) = name.iter().position(|&byte| byte == b'{') else { return name };
    let tag = &name[open + 1..];
    match tag.iter().position(|&byte| byte == b'}') {
        None | Some(0) => name,
        Some(close) => &tag[..close],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc16_xmodem() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    /// The examples of Redis's documentation of hash tags, and what else may stand around braces.
    #[test]
    fn a_hash_tag_is_hashed_alone() {
        for (name, tag) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("foo}bar{", "foo}bar{"),
            ("}{a}", "a"),
            ("", ""),
        ] {
            assert_eq!(hash_tag(name.as_bytes()), tag.as_bytes(), "{name}");
        }
        assert_eq!((hash_slot(b"foo"), hash_slot(b"bar"), hash_slot(b"")), (12_182, 5_061, 0));
    }
}
