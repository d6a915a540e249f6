//! Names of keys in Redis, made from a template.
//!
//! `{key}` and `{rule}` are replaced wherever they stand in the template; everything else stays. The default, `sg:{{key}}:{rule}`, gives `sg:{alice}:api`: the braces that stay are a hash tag, by which
//! Redis Cluster keeps all states of one key on one node.
//!
//! `%`, `{` and `}` inside a user's key or rule are written `%25`, `%7B` and `%7D`, so that no key can close the
//! braces around it and no two keys share a name. Nothing else is escaped: names in Redis are bytes.

use std::fmt;

use slidegate::receipt::ReceiptId;
use slidegate::store::{RefusalCause, StoreError};

use crate::options::OptionsError;

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
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, part, after)) = placeholder(rest) {
            parts.extend([TemplatePart::Literal(before.into()), part]);
            rest = after;
        }
        parts.push(TemplatePart::Literal(rest.into()));
        if !parts.contains(&TemplatePart::Key) {
            return Err(OptionsError::Template { template: text.into() });
        }
        Ok(Self { parts })
    }

    /// The default template with another beginning than `sg`.
    pub(crate) fn with_prefix(prefix: &str) -> Result<Self, OptionsError> {
        if prefix.is_empty() || prefix.contains(['{', '}']) {
            return Err(OptionsError::Prefix { prefix: prefix.into() });
        }
        Self::new(&format!("{prefix}:{{{{key}}}}:{{rule}}"))
    }

    /// The name of the state of a rule and a key.
    pub(crate) fn name(&self, rule: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Vec<u8> {
        let (rule, key) = (rule.as_ref(), key.as_ref());
        let mut name = Vec::with_capacity(rule.len() + key.len() + 16);
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => name.extend_from_slice(text.as_bytes()),
                TemplatePart::Key => escape(key, &mut name),
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
    pub(crate) fn key_of(&self, name: &[u8], rule: &[u8]) -> Option<Vec<u8>> {
        // The rest of the name has a known length, and every `{key}` of a template stands for the same bytes.
        let without = self.name(rule, b"").len();
        let keys = self.parts.iter().filter(|part| **part == TemplatePart::Key).count();
        let key_bytes = name.len().checked_sub(without)? / keys;
        let before = self.parts.iter().take_while(|part| **part != TemplatePart::Key);
        let start = Self { parts: before.cloned().collect() }.name(rule, b"").len();
        let key = unescape(name.get(start..start + key_bytes)?);
        // A name that this template did not make differs from the one made of its key.
        (self.name(rule, &key) == name).then_some(key)
    }
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

/// Reverses [`escape`].
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    loop {
        let (byte, after) = match rest {
            [b'%', b'2', b'5', after @ ..] => (b'%', after),
            [b'%', b'7', b'B', after @ ..] => (b'{', after),
            [b'%', b'7', b'D', after @ ..] => (b'}', after),
            [byte, after @ ..] => (*byte, after),
            [] => return plain,
        };
        plain.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests;
