//! What was written: a tree of YAML values, each with its place.
//!
//! Reading into a tree instead of into structs is what lets the second stage report every mistake of a
//! file: serde stops at the first field that does not fit.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Error, Location, Spanned};

use super::mistake::Mistake;
use crate::service::shown;

/// A value and its place.
pub(super) type Node = Spanned<Value>;

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number, as decimal digits that read back as the same number.
    Number(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

impl Value {
    /// How a mistake speaks of it.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(value) => format!("`{value}`"),
            Self::Whole(value) => format!("`{value}`"),
            Self::Number(text) | Self::Text(text) => format!("`{}`", shown(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// Reads a file's text.
pub(super) fn parse(text: &str) -> Result<Node, Mistake> {
    // `yes` and `on` are texts here as in YAML 1.2; `.nan` is a text and no number.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        Mistake::at(location, message(&error))
    })
}

/// Our words where the parser speaks of its own programming interface.
fn message(error: &Error) -> String {
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            format!("{}: is given twice; keep one of them", key.as_deref().unwrap_or("a key"))
        }
        Error::MultipleDocuments { .. } => "a second document begins; keep one document per file".to_owned(),
        Error::NullIntoString { .. } => "a name is missing before the colon; write one".to_owned(),
        _ => {
            let text = error.to_string();
            let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            let text = place.and_then(|place| text.strip_suffix(place.as_str())).unwrap_or(&text);
            format!("is not YAML: {text}; mend the syntax here or just before")
        }
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
        Ok(u64::try_from(value).map_or_else(|_| Value::Number(value.to_string()), Value::Whole))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Number(value.to_string()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Number(value.to_string()))
    }

    /// The shortest decimal that reads back as the same number: for up to 15 digits, what was written.
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value.to_string()))
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
    use super::*;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value
    }

    #[test]
    fn scalars_keep_their_text() {
        assert_eq!(value("60/1m"), Value::Text("60/1m".into()));
        assert_eq!(value("60"), Value::Whole(60));
        assert_eq!(value("-1"), Value::Number("-1".into()));
        assert_eq!(value("0.05"), Value::Number("0.05".into()));
        assert_eq!(value("5e-2"), Value::Number("0.05".into()));
        assert_eq!(value("0.000001"), Value::Number("0.000001".into()));
        assert_eq!(value("true"), Value::Bool(true));
        assert_eq!(value("\"true\""), Value::Text("true".into()));
        assert_eq!(value("yes"), Value::Text("yes".into()));
        assert_eq!(value(".nan"), Value::Text(".nan".into()));
        assert_eq!(value("# nothing\n"), Value::Null);
    }

    #[test]
    fn every_value_knows_its_place() {
        let Value::Map(entries) = value("rules:\n  api: { limit: 60/1m }\n") else { panic!("a mapping") };
        let Value::Map(rules) = &entries[0].1.value else { panic!("a mapping") };
        let Value::Map(fields) = &rules[0].1.value else { panic!("a mapping") };
        let (name, limit) = &fields[0];
        assert_eq!((name.value.as_str(), name.referenced.line(), name.referenced.column()), ("limit", 2, 10));
        assert_eq!((limit.referenced.line(), limit.referenced.column()), (2, 17));
    }
}
