//! JSON as traces and requests write it: whole numbers, and no field twice.
//!
//! serde's derived readers would do for good input; for bad input they cannot name the field whose type
//! is wrong, and a general JSON value lets the last of two equal fields win.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::excerpt;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    /// A whole number that is not negative.
    Whole(u64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
    /// What no field takes, as errors show it: null, true, false, numbers that are not whole, negative or too large.
    Other(String),
}

impl Json {
    /// Reads a line that holds one value; the error says what is wrong and in which column.
    pub(crate) fn parse_line(text: &[u8]) -> Result<Self, String> {
        Self::parse(text, "column", "write one object per line, numbers in digits only")
    }

    /// Reads the body of a request, one value; the error says what is wrong and at which byte.
    pub(crate) fn parse_body(text: &[u8]) -> Result<Self, String> {
        if text.is_empty() {
            return Err("body: is empty; send a JSON object".to_owned());
        }
        Self::parse(text, "byte", "send one JSON object, numbers in digits only")
            .map_err(|error| if error.starts_with("is not ") { format!("body: {error}") } else { error })
    }

    /// `unit` is what errors call a byte of the text, counted from 1.
    fn parse(text: &[u8], unit: &str, remedy: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(text)
            .map_err(|error| format!("is not UTF-8 at {unit} {}; write UTF-8", error.valid_up_to() + 1))?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read = Place::Root.deserialize(&mut deserializer);
        read.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
            // A line within the text would be mistaken for a line of the trace.
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = message.strip_suffix(&place).unwrap_or(&message);
            if error.is_data() {
                // Valid JSON that [`JsonVisitor`] refused.
                return message.to_owned();
            }
            let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let position = lines_before.map(str::len).sum::<usize>() + error.column();
            format!("is not JSON: {message} at {unit} {}; {remedy}", position.max(1))
        })
    }

    /// The value as an error describes it.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Whole(value) => value.to_string(),
            Self::Text(text) => format!("\"{}\"", excerpt(text)),
            Self::List(_) => "a list".to_owned(),
            Self::Object(_) => "an object".to_owned(),
            Self::Other(text) => text.clone(),
        }
    }
}

/// Where a value is in the text: `checks[0].rule`.
#[derive(Clone, Copy)]
enum Place<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(&excerpt(name)),
            Self::Field(parent, name) => write!(f, "{parent}.{}", excerpt(name)),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor(self))
    }
}

struct JsonVisitor<'a>(Place<'a>);

impl<'de> Visitor<'de> for JsonVisitor<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other("null".to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Other(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Other(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        // Debug keeps `1.0` a fraction and large numbers short.
        Ok(Json::Other(format!("{value:?}")))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Place::Item(&self.0, list.len()))? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = BTreeMap::new();
        while let Some(name) = entries.next_key::<String>()? {
            let place = Place::Field(&self.0, &name);
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("{place}: is given twice; give it once")));
            }
            let value = entries.next_value_seed(place)?;
            object.insert(name, value);
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_column() {
        let error = |text: &[u8]| Json::parse_line(text).unwrap_err();
        for text in ["{", "{\"a\":NaN}", "{\"a\":1e400}", "{\"a\":1} x", "", "{\"a\":1,}", "'a'"] {
            let error = error(text.as_bytes());
            assert!(error.starts_with("is not JSON: ") && error.contains(" at column "), "{text}: {error}");
            assert!(!error.contains("line 1"), "{error}");
        }
        let twice = error(b"{\"a\":1,\"b\":{\"c\":1,\"c\":2}}");
        assert_eq!(twice, "b.c: is given twice; give it once");
        assert!(error(b"{\"a\":\"\xff\"}").starts_with("is not UTF-8 at column 7"));
        assert!(error("[".repeat(1_000).as_bytes()).contains("recursion limit"));
    }

    /// Bodies have several lines, and their first byte is byte 1.
    #[test]
    fn errors_of_a_body_name_the_byte() {
        for (text, byte) in [
            (&b"\xff"[..], 1),
            (b"{", 1),
            (b"{\n", 2),
            (b"\n\n{\"a\":}", 8),
            (b"{\"a\":1,\n\"b\":}", 13),
            (b"{\"a\":1,\n\"b\":\"\xff\"}", 14),
        ] {
            let error = Json::parse_body(text).unwrap_err();
            assert!(
                error.starts_with("body: is not ") && error.contains(&format!(" at byte {byte}; ")),
                "{error}"
            );
        }
        let twice = Json::parse_body(b"{\"checks\":[{\"key\":1},{\"key\":1,\"key\":2}]}").unwrap_err();
        assert_eq!(twice, "checks[1].key: is given twice; give it once");
    }
}
