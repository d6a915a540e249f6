//! Names of keys in Redis, made from a template.
//!
//! `{key}` and `{rule}` are replaced wherever they stand in the template; everything else stays. The default, `sg:{{key}}:{rule}`, gives `sg:{alice}:api`: the braces that stay are a hash tag, by which
//! Redis Cluster keeps all states of one key on one node.
//!
//! `%`, `{` and `}` inside a user's key or rule are written `%25`, `%7B` and `%7D`, so that no key can close the
//! braces around it and no two keys share a name. Nothing else is escaped: names in Redis are bytes.
//!
//! A key with a tag stands in the template as `TAG}{KEY`, both escaped: `sg:{team}{alice}:api`. The braces between them
//! are in no escaped key, so the name is that of no other state; in the default template the hash tag is the tag, which
//! puts all its keys into one slot. A shard of a key ends with `%s` and its number, `sg:{alice%s3}:api`, which no escape
//! begins: without a tag the shards of a key are in different slots.

use std::fmt;

use slidegate::Key;
use slidegate::receipt::ReceiptId;
use slidegate::store::{RefusalCause, StoreError};

use crate::options::OptionsError;
use crate::parameters::shortened;

/// Longest template, and longest prefix.
pub const TEMPLATE_BYTES_MAX: usize = 512;

/// Between a tag and its key.
const TAG_END: &[u8] = b"}{";
/// Between a key and the number of its shard.
const SHARD_SIGN: &[u8] = b"%s";

/// A template of key names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Key,
    Rule,
}

impl KeyTemplate {
    /// Reads a template: `rlaas:rate_limit:{key}`.
    pub(crate) fn new(text: &str) -> Result<Self, OptionsError> {
        check_length("key_template", text)?;
        Self::parsed(text)
    }

    fn parsed(text: &str) -> Result<Self, OptionsError> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, part, after)) = placeholder(rest) {
            parts.extend([TemplatePart::Literal(before.into()), part]);
            rest = after;
        }
        parts.push(TemplatePart::Literal(rest.into()));
        if !parts.contains(&TemplatePart::Key) {
            return Err(OptionsError::Template { template: shortened(text) });
        }
        Ok(Self { parts })
    }

    /// The default template with another beginning than `sg`.
    pub(crate) fn with_prefix(prefix: &str) -> Result<Self, OptionsError> {
        if prefix.is_empty() || prefix.contains(['{', '}']) {
            return Err(OptionsError::Prefix { prefix: shortened(prefix) });
        }
        check_length("key_prefix", prefix)?;
        Self::parsed(&format!("{prefix}:{{{{key}}}}:{{rule}}"))
    }

    /// Whether the states of different rules have different names.
    pub(crate) fn has_rule(&self) -> bool {
        self.parts.contains(&TemplatePart::Rule)
    }

    /// The name of the state of a rule and a key, with its tag and shard.
    pub(crate) fn state(&self, rule: &str, key: Key<'_>) -> Vec<u8> {
        let mut written = Vec::with_capacity(key.identity().len() + 8);
        if let Some(tag) = key.tag() {
            escape(tag.as_bytes(), &mut written);
            written.extend_from_slice(TAG_END);
        }
        escape(key.as_str().as_bytes(), &mut written);
        if let Some(shard) = key.shard() {
            written.extend_from_slice(SHARD_SIGN);
            written.extend_from_slice(shard.to_string().as_bytes());
        }
        self.filled(rule.as_bytes(), &written)
    }

    /// The name of the state of a rule and a key without a tag.
    fn name(&self, rule: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Vec<u8> {
        let mut written = Vec::new();
        escape(key.as_ref(), &mut written);
        self.filled(rule.as_ref(), &written)
    }

    /// The template with a rule, and with the text of a key as it is written in names.
    fn filled(&self, rule: &[u8], key: &[u8]) -> Vec<u8> {
        let mut name = Vec::with_capacity(rule.len() + key.len() + 16);
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => name.extend_from_slice(text.as_bytes()),
                TemplatePart::Key => name.extend_from_slice(key),
                TemplatePart::Rule => escape(rule, &mut name),
            }
        }
        name
    }

    /// Refuses an admission with two equal names: its charges on one state would be decided without each other.
    pub(crate) fn check_distinct(&self, names: &[Vec<u8>]) -> Result<(), StoreError> {
        let duplicate = (1..names.len()).find(|&index| names[..index].contains(&names[index]));
        let Some(index) = duplicate else { return Ok(()) };
        let name = String::from_utf8_lossy(&names[index]);
        let why = format!(
            "key_template `{self}` gives two charges of this admission the same key `{name}`; write {{rule}} into \
             it apart from {{key}}, for example `sg:{{{{key}}}}:{{rule}}`, or charge one rule at a time"
        );
        Err(StoreError::Refused { cause: RefusalCause::Other, why: why.into() })
    }

    /// Whether the key stands in a hash tag: then all names of a state lie in one slot of a cluster, as nothing behind the
    /// tag is hashed. What users write has no braces in a name, so the first ones are the template's.
    pub(crate) fn has_hash_tag(&self) -> bool {
        let (mut open, mut holds_key) = (false, false);
        for part in &self.parts {
            match part {
                TemplatePart::Key => holds_key |= open,
                TemplatePart::Rule => {}
                TemplatePart::Literal(text) => {
                    for brace in text.chars() {
                        match brace {
                            '{' => open = true,
                            '}' if open => return holds_key,
                            _ => {}
                        }
                    }
                }
            }
        }
        false
    }

    /// The name of the secret that receipts are signed with. No state has it: a `%` in a key or a rule is escaped.
    pub(crate) fn secret(&self) -> Vec<u8> {
        [&self.name(b"", b"")[..], b"%secret"].concat()
    }

    /// A number that is equal in all processes with the same template, so that receipts pass between them.
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the hash is the number")]
    pub(crate) fn store_number(&self) -> u32 {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.name(b"{rule}", b"{key}").iter().fold(0xcbf2_9ce4_8422_2325, mix) as u32
    }

    /// The SCAN pattern for the states of a rule. It may match more: [`Self::key_of`] tells them apart.
    pub(crate) fn pattern(&self, rule: &[u8]) -> Vec<u8> {
        let mut pattern = Vec::new();
        for part in &self.parts {
            if *part == TemplatePart::Key {
                pattern.push(b'*');
                continue;
            }
            for byte in (Self { parts: vec![part.clone()] }).name(rule, b"") {
                if b"*?[]\\^-".contains(&byte) {
                    pattern.push(b'\\');
                }
                pattern.push(byte);
            }
        }
        pattern
    }

    /// The key whose state of `rule` has that name; `None` if it is not a name of this template.
    pub(crate) fn key_of(&self, name: &[u8], rule: &[u8]) -> Option<NamedKey> {
        // The rest of the name has a known length, and every `{key}` of a template stands for the same bytes.
        let without = self.name(rule, b"").len();
        let keys = self.parts.iter().filter(|part| **part == TemplatePart::Key).count();
        let key_bytes = name.len().checked_sub(without)? / keys;
        let before = self.parts.iter().take_while(|part| **part != TemplatePart::Key);
        let start = Self { parts: before.cloned().collect() }.name(rule, b"").len();
        let written = name.get(start..start + key_bytes)?;
        // A name that this template did not make differs from the one made of its key.
        if self.filled(rule, written) == name { NamedKey::read(written) } else { None }
    }
}

/// A key as a name has it. Its bytes need not be text: another program may have written the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedKey {
    pub(crate) tag: Option<Vec<u8>>,
    pub(crate) key: Vec<u8>,
    pub(crate) shard: Option<u16>,
}

impl NamedKey {
    /// Reads the text of a key as it is written in names; `None` if this program writes none like it.
    fn read(written: &[u8]) -> Option<Self> {
        let at = written.windows(TAG_END.len()).position(|end| end == TAG_END);
        let (tag, rest) = match at {
            Some(at) => (Some(unescape(&written[..at])?), &written[at + TAG_END.len()..]),
            None => (None, written),
        };
        let at = rest.windows(SHARD_SIGN.len()).rposition(|sign| sign == SHARD_SIGN);
        let (key, shard) = match at {
            Some(at) => (&rest[..at], Some(shard_number(&rest[at + SHARD_SIGN.len()..])?)),
            None => (rest, None),
        };
        Some(Self { tag, key: unescape(key)?, shard })
    }
}

/// A number without a leading zero.
fn shard_number(digits: &[u8]) -> Option<u16> {
    let number: u16 = str::from_utf8(digits).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == digits).then_some(number)
}

fn check_length(name: &'static str, text: &str) -> Result<(), OptionsError> {
    let bytes = text.len();
    if bytes > TEMPLATE_BYTES_MAX { Err(OptionsError::TemplateLength { name, bytes }) } else { Ok(()) }
}

/// As the user wrote it.
impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            TemplatePart::Literal(text) => f.write_str(text),
            TemplatePart::Key => f.write_str("{key}"),
            TemplatePart::Rule => f.write_str("{rule}"),
        })
    }
}

/// `sg:{{key}}:{rule}`.
impl Default for KeyTemplate {
    fn default() -> Self {
        Self::with_prefix("sg").expect("it has no braces, and the template has a key")
    }
}

/// The name of the record that a receipt is spent, beside the state of its first charge.
pub(crate) fn spent_name(first_charge: &[u8], id: ReceiptId) -> Vec<u8> {
    [first_charge, format!("%spent:{:016x}", id.get()).as_bytes()].concat()
}

/// Splits a text at its first placeholder: the text before it, the placeholder, the text after it.
fn placeholder(text: &str) -> Option<(&str, TemplatePart, &str)> {
    let named = [("{key}", TemplatePart::Key), ("{rule}", TemplatePart::Rule)];
    let splits = named.into_iter().filter_map(|(name, part)| {
        let (before, after) = text.split_once(name)?;
        Some((before, part, after))
    });
    splits.min_by_key(|(before, ..)| before.len())
}

/// Escapes a user's key or rule for a name.
fn escape(bytes: &[u8], name: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'%' => name.extend_from_slice(b"%25"),
            b'{' => name.extend_from_slice(b"%7B"),
            b'}' => name.extend_from_slice(b"%7D"),
            _ => name.push(byte),
        }
    }
}

/// Reverses [`escape`]; `None` if that writes no such text.
fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut plain, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    loop {
        let (byte, after) = match rest {
            [b'%', b'2', b'5', after @ ..] => (b'%', after),
            [b'%', b'7', b'B', after @ ..] => (b'{', after),
            [b'%', b'7', b'D', after @ ..] => (b'}', after),
            [b'%' | b'{' | b'}', ..] => return None,
            [byte, after @ ..] => (*byte, after),
            [] => return Some(plain),
        };
        plain.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests;
