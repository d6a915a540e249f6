//! Names of keys in Redis: which state lives where.
//!
//! A template says how a name is made. `{key}` and `{rule}` in it are replaced wherever they stand, everything
//! else stays as it is. The default, `sg:{{key}}:{rule}`, gives `sg:{alice}:api`: the braces that stay are a
//! hash tag, by which Redis Cluster keeps all states of one key on one node.
//!
//! `%`, `{` and `}` inside a user's key or rule are written `%25`, `%7B` and `%7D`, so that no key can close the
//! braces around it and no two keys share a name. Nothing else is escaped: names in Redis are bytes.

mod escape;

use std::fmt;

use slidegate::receipt::ReceiptId;
use slidegate::store::StoreError;
use thiserror::Error;

use escape::{escape, escape_glob, unescape};

/// Stands between the name of a state and the id of a receipt that was charged there.
const SPENT: &[u8] = b"%spent:";

/// Ends the name of the secret that receipts are signed with.
const SECRET: &[u8] = b"%secret";

/// How the names of keys are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Key,
    Rule,
}

impl KeyTemplate {
    /// Reads a template: `rlaas:rate_limit:{key}`.
    pub(crate) fn new(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let placeholder = [("{key}", Part::Key), ("{rule}", Part::Rule)]
                .into_iter()
                .find_map(|(name, part)| rest.strip_prefix(name).map(|after| (part, after)));
            if let Some((part, after)) = placeholder {
                push_literal(&mut parts, &mut literal);
                parts.push(part);
                rest = after;
            } else {
                let (here, after) = rest.split_at(character.len_utf8());
                literal.extend_from_slice(here.as_bytes());
                rest = after;
            }
        }
        push_literal(&mut parts, &mut literal);
        if !parts.contains(&Part::Key) {
            return Err(TemplateError::NoKey { template: text.into() });
        }
        Ok(Self { parts })
    }

    /// The default template with another beginning than `sg`.
    pub(crate) fn with_prefix(prefix: &str) -> Result<Self, TemplateError> {
        if prefix.is_empty() || prefix.contains(['{', '}']) {
            return Err(TemplateError::Prefix { prefix: prefix.into() });
        }
        Self::new(&format!("{prefix}:{{{{key}}}}:{{rule}}"))
    }

    /// The name of the state of a rule and a key.
    pub(crate) fn name(&self, rule: &[u8], key: &[u8]) -> Vec<u8> {
        let mut name = Vec::with_capacity(rule.len() + key.len() + 16);
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => name.extend_from_slice(bytes),
                Part::Key => escape(key, &mut name),
                Part::Rule => escape(rule, &mut name),
            }
        }
        name
    }

    /// The name of the state of a rule and a key, which are texts.
    pub(crate) fn state(&self, rule: &str, key: &str) -> Vec<u8> {
        self.name(rule.as_bytes(), key.as_bytes())
    }

    /// Refuses names of which two are the same: charges on one state would be decided without each other.
    pub(crate) fn check_apart(&self, names: &[Vec<u8>]) -> Result<(), StoreError> {
        let twin = (1..names.len()).find(|&index| names[..index].contains(&names[index]));
        let Some(index) = twin else { return Ok(()) };
        let name = String::from_utf8_lossy(&names[index]);
        let why = format!(
            "key_template `{self}` gives two charges of this admission the same key `{name}`; write {{rule}} into \
             it apart from {{key}}, for example `sg:{{{{key}}}}:{{rule}}`, or charge one rule at a time"
        );
        Err(StoreError::Refused { why: why.into() })
    }

    /// The name of the secret that receipts are signed with. No state has it: a `%` in a key or a rule is escaped.
    pub(crate) fn secret(&self) -> Vec<u8> {
        [&self.name(b"", b"")[..], SECRET].concat()
    }

    /// A number that is the same in all processes that name their keys alike: receipts go from one to the other.
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the hash is the number")]
    pub(crate) fn store_number(&self) -> u32 {
        let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.name(b"{rule}", b"{key}").iter().fold(0xcbf2_9ce4_8422_2325, mix) as u32
    }

    /// What SCAN matches to find the states of a rule. It may find more: [`Self::key_of`] tells which are its.
    pub(crate) fn pattern(&self, rule: &[u8]) -> Vec<u8> {
        let mut pattern = Vec::new();
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => escape_glob(bytes, &mut pattern),
                Part::Key => pattern.push(b'*'),
                Part::Rule => {
                    let mut escaped = Vec::new();
                    escape(rule, &mut escaped);
                    escape_glob(&escaped, &mut pattern);
                }
            }
        }
        pattern
    }

    /// The key whose state of `rule` has that name, if it is one. For every template.
    pub(crate) fn key_of(&self, name: &[u8], rule: &[u8]) -> Option<Vec<u8>> {
        // Without its keys the name has a known length, and all its keys have the same.
        let without = self.name(rule, b"").len();
        let keys = self.parts.iter().filter(|part| **part == Part::Key).count();
        let key_bytes = name.len().checked_sub(without)? / keys;
        let before = self.parts.iter().take_while(|part| **part != Part::Key);
        let start = Self { parts: before.cloned().collect() }.name(rule, b"").len();
        let key = unescape(name.get(start..start + key_bytes)?)?;
        (self.name(rule, &key) == name).then_some(key)
    }
}

/// As it was written.
impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Literal(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Part::Key => f.write_str("{key}"),
            Part::Rule => f.write_str("{rule}"),
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
    let mut name = first_charge.to_vec();
    name.extend_from_slice(SPENT);
    name.extend_from_slice(format!("{:016x}", id.get()).as_bytes());
    name
}

fn push_literal(parts: &mut Vec<Part>, literal: &mut Vec<u8>) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal)));
    }
}

/// Why a text is no template for keys.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// All keys would share one state.
    #[error(
        "key_template: `{template}` has no {{key}}, so all keys would share one state; write {{key}} where the key \
         belongs, for example `sg:{{{{key}}}}:{{rule}}`"
    )]
    NoKey {
        /// What was written.
        template: String,
    },
    /// A prefix that would change which part of a name is the hash tag, or none at all.
    #[error(
        "key_prefix: `{prefix}` cannot begin the names of keys; give at least one character and no braces, or a whole \
         key_template"
    )]
    Prefix {
        /// What was written.
        prefix: String,
    },
}

#[cfg(test)]
mod tests;
