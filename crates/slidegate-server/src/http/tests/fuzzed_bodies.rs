//! Fuzzed bodies from a seed. The tests of the program use it too.

/// A seeded generator of random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end` (xorshift).
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap_or_default() % end.max(1)
    }
}

/// Valid bodies that mutations start from.
pub(crate) const SEEDS: &[&str] = &[
    r#"{"rule":"api","key":"alice","cost":1}"#,
    r#"{"rule":"api","key":"alice"}"#,
    r#"{"key":"k\u00e4se","rule":"api","cost":3,"tag":"t","on_store_error":"allow"}"#,
    r#"{"rule":{"limit":5,"window":"60s","algorithm":"sliding-buckets","buckets":6,"edge":"full"},"key":"bob"}"#,
    r#"{"rule":{"limit":1000000000000,"window":"400d","algorithm":"compact-log","entries":4},"key":"bob","cost":9}"#,
    r#"{"checks":[{"rule":"api","key":"a","cost":2},{"rule":"search","key":"b"}],"on_store_error":"deny"}"#,
    r#"{"checks":[{"rule":{"limit":2,"window":"1ms","algorithm":"gcra"},"key":"a"}]}"#,
    r#"{"rule":{"limit":"60/1m"},"key":"bob"}"#,
    r#"{"rule":{"algorithm":"sliding-buckets","buckets":6,"limit":"9500\/24hours"},"key":"bob"}"#,
];

/// Fragments that mutations insert.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "NaN",
    "-1",
    "0",
    "1e9",
    "0.5",
    "18446744073709551615",
    "18446744073709551616",
    "\"rule\":",
    "\"key\":",
    "\"checks\":[",
    "\"window\":\"1m\",",
    "/m",
    "\"cost\":",
    "\"tag\":\"\"",
    "\u{202e}",
    "\u{0}",
    "\n",
    "ä",
    "{\"a\":",
    "[[[[[[[[",
    "  ",
];

/// A valid body after up to four mutations; not always UTF-8.
pub(crate) fn mutated(random: &mut Random) -> Vec<u8> {
    let mut bytes = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len() + 1);
        let word = WORDS[random.below(WORDS.len())].as_bytes();
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, word.iter().copied())),
            2 => {
                let end = (at + random.below(8)).min(bytes.len());
                bytes.splice(at..end, word.iter().copied());
            }
            3 => {
                let byte = u8::try_from(random.below(256)).unwrap_or_default();
                bytes.splice(at..(at + 1).min(bytes.len()), [byte]);
            }
            4 => {
                let copied = bytes[at..].to_vec();
                bytes.extend(copied);
            }
            _ => drop(bytes.drain(at..(at + random.below(6)).min(bytes.len()))),
        }
    }
    bytes
}
