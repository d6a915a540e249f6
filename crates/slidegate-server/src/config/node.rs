//! A tree of YAML values, each with its position in the file.
//!
//! The tree lets the second stage report every mistake of a file. Parsing into structs would stop at the first one,
//! as serde does.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::text::excerpt;

/// A value and its position.
pub(super) type Node = Spanned<YamlValue>;

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum YamlValue {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

/// A number that is negative, has a fraction or an exponent, or is too large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number {
    /// Decimal digits that parse to the same number.
    pub(super) decimal: String,
    /// The number as written in the file.
    written: String,
}

impl Number {
    fn new(number: &impl ToString) -> Self {
        let decimal = number.to_string();
        Self { written: decimal.clone(), decimal }
    }
}

impl YamlValue {
    /// The value as a mistake describes it.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(value) => format!("`{value}`"),
            Self::Whole(value) => format!("`{value}`"),
            Self::Number(Number { written: text, .. }) | Self::Text(text) => format!("`{}`", excerpt(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Whole(number) => Some(number.to_string()),
            Self::Number(number) => Some(number.decimal.clone()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }
}

/// Looks up the spelling of numbers in `text`, the source of the nodes. The parser returns only values: a mistake would
/// quote `60` where the file has `60.0`.
pub(super) fn keep_numbers_as_written(node: &mut Node, text: &str) {
    match &mut node.value {
        YamlValue::Number(number) => {
            let span = node.defined.span();
            let found = span.byte_offset().zip(span.byte_len()).and_then(|(offset, len)| {
                let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
                text.get(offset..offset.checked_add(len)?)
            });
            if let Some(written) = found.map(str::trim).filter(|written| !written.is_empty()) {
                written.clone_into(&mut number.written);
            }
        }
        YamlValue::List(items) => items.iter_mut().for_each(|item| keep_numbers_as_written(item, text)),
        YamlValue::Map(entries) => {
            for (_, node) in entries {
                keep_numbers_as_written(node, text);
            }
        }
        YamlValue::Null | YamlValue::Bool(_) | YamlValue::Whole(_) | YamlValue::Text(_) => {}
    }
}

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(u64::try_from(value).map_or_else(|_| YamlValue::Number(Number::new(&value)), YamlValue::Whole))
    }

    fn visit_u128<E>(self, value: u128) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(Number::new(&value)))
    }

    fn visit_i128<E>(self, value: i128) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(Number::new(&value)))
    }

    /// The shortest decimal that parses to the same number: exact for up to 15 digits.
    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Number(Number::new(&value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(YamlValue::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    fn value(text: &str) -> YamlValue {
        parse(text).unwrap().value
    }

    fn number(text: &str) -> (String, String) {
        let YamlValue::Number(Number { decimal, written }) = value(text) else { panic!("a number") };
        (decimal, written)
    }

    #[test]
    fn scalars_keep_their_text() {
        assert_eq!(value("60/1m"), YamlValue::Text("60/1m".into()));
        assert_eq!(value("60"), YamlValue::Whole(60));
        assert_eq!(value("true"), YamlValue::Bool(true));
        assert_eq!(value("\"true\""), YamlValue::Text("true".into()));
        assert_eq!(value("yes"), YamlValue::Text("yes".into()));
        assert_eq!(value(".nan"), YamlValue::Text(".nan".into()));
        assert_eq!(value("# nothing\n"), YamlValue::Null);
    }

    #[test]
    fn numbers_are_exact_and_shown_as_written() {
        for (text, decimal) in
            [("-1", "-1"), ("0.05", "0.05"), ("5e-2", "0.05"), ("0.000001", "0.000001"), ("60.0", "60")]
        {
            assert_eq!(number(text), (decimal.into(), text.into()));
        }
        let YamlValue::List(items) = value("[&a 6.50, *a, !!float 7, 8.0 ] # käse") else {
            panic!("a list")
        };
        let kinds: Vec<String> = items.iter().map(|item| item.value.kind()).collect();
        assert_eq!(kinds, ["`6.50`", "`6.50`", "`7`", "`8.0`"]);
    }
}
