//! What was written: a tree of YAML values, each with its place.
//!
//! Reading into a tree instead of into structs is what lets the second stage report every mistake of a
//! file: serde stops at the first field that does not fit.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use crate::text::excerpt;

/// A value and its place.
pub(super) type Node = Spanned<Value>;

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
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
    /// Decimal digits that read back as the same number.
    pub(super) decimal: String,
    /// What stands in the file.
    written: String,
}

impl Number {
    fn new(number: &impl ToString) -> Self {
        let decimal = number.to_string();
        Self { written: decimal.clone(), decimal }
    }
}

impl Value {
    /// How a mistake speaks of it.
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

    /// The text of a value without parts.
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

/// Looks up how numbers are written in `text`, from which the nodes were read: the parser hands over
/// values alone, and in a file that says `60.0` nobody finds `60`.
pub(super) fn keep_numbers_as_written(node: &mut Node, text: &str) {
    match &mut node.value {
        Value::Number(number) => {
            let span = node.defined.span();
            let found = span.byte_offset().zip(span.byte_len()).and_then(|(offset, len)| {
                let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
                text.get(offset..offset.checked_add(len)?)
            });
            if let Some(written) = found.map(str::trim).filter(|written| !written.is_empty()) {
                written.clone_into(&mut number.written);
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| keep_numbers_as_written(item, text)),
        Value::Map(entries) => entries.iter_mut().for_each(|(_, node)| keep_numbers_as_written(node, text)),
        Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Text(_) => {}
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(u64::try_from(value).map_or_else(|_| Value::Number(Number::new(&value)), Value::Whole))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Number(Number::new(&value)))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Number(Number::new(&value)))
    }

    /// The shortest decimal that reads back as the same number: for up to 15 digits, what was written.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(Number::new(&value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Value::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value
    }

    fn number(text: &str) -> (String, String) {
        let Value::Number(Number { decimal, written }) = value(text) else { panic!("a number") };
        (decimal, written)
    }

    #[test]
    fn scalars_keep_their_text() {
        assert_eq!(value("60/1m"), Value::Text("60/1m".into()));
        assert_eq!(value("60"), Value::Whole(60));
        assert_eq!(value("true"), Value::Bool(true));
        assert_eq!(value("\"true\""), Value::Text("true".into()));
        assert_eq!(value("yes"), Value::Text("yes".into()));
        assert_eq!(value(".nan"), Value::Text(".nan".into()));
        assert_eq!(value("# nothing\n"), Value::Null);
    }

    #[test]
    fn numbers_are_exact_and_shown_as_written() {
        for (text, decimal) in
            [("-1", "-1"), ("0.05", "0.05"), ("5e-2", "0.05"), ("0.000001", "0.000001"), ("60.0", "60")]
        {
            assert_eq!(number(text), (decimal.into(), text.into()));
        }
        let Value::List(items) = value("[&a 6.50, *a, !!float 7, 8.0 ] # käse") else { panic!("a list") };
        let kinds: Vec<String> = items.iter().map(|item| item.value.kind()).collect();
        assert_eq!(kinds, ["`6.50`", "`6.50`", "`7`", "`8.0`"]);
    }
}
