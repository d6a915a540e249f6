//! The fields of an object, taken out one by one, so that what is left over is unknown.

use std::collections::BTreeMap;

use super::json::Json;
use crate::service::{did_you_mean, shown};

/// What is wrong with a field; begins with its name.
pub(super) type Malformed = String;

/// An object whose fields are being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    /// What stands before a field's name in errors, for example `charges[0].`.
    prefix: String,
    left: BTreeMap<String, Json>,
    asked: Vec<&'static str>,
}

impl Fields {
    pub(super) fn new(prefix: String, fields: BTreeMap<String, Json>) -> Self {
        Self { prefix, left: fields, asked: Vec::new() }
    }

    /// How errors name a field.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Any value, if it is there.
    pub(super) fn take(&mut self, name: &'static str) -> Option<Json> {
        self.asked.push(name);
        self.left.remove(name)
    }

    /// A whole number, if it is there.
    pub(super) fn whole(&mut self, name: &'static str) -> Result<Option<u64>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Whole(number)) => Ok(Some(number)),
            Some(other) => {
                let max = u64::MAX;
                Err(self.wrong(name, &format!("a whole number from 0 to {max}, in digits only"), &other))
            }
        }
    }

    /// A text, if it is there.
    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<String>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a text in quotes", &other)),
        }
    }

    /// A list, if it is there.
    pub(super) fn list(&mut self, name: &'static str) -> Result<Option<Vec<Json>>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::List(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(name, "a list in brackets", &other)),
        }
    }

    /// A whole number that must be there.
    pub(super) fn required_whole(&mut self, name: &'static str) -> Result<u64, Malformed> {
        let found = self.whole(name)?;
        self.required(name, found)
    }

    /// A text that must be there.
    pub(super) fn required_text(&mut self, name: &'static str) -> Result<String, Malformed> {
        let found = self.text(name)?;
        self.required(name, found)
    }

    /// What was found, or that it is missing.
    pub(super) fn required<T>(&self, name: &str, found: Option<T>) -> Result<T, Malformed> {
        found.ok_or_else(|| format!("{}: is missing; add it", self.path(name)))
    }

    /// Checks that every field was asked for.
    pub(super) fn finish(self) -> Result<(), Malformed> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(unknown) => {
                let remedy = did_you_mean(unknown, self.asked.iter().copied());
                Err(format!("{}: is not a field here; {remedy}", self.path(&shown(unknown))))
            }
        }
    }

    /// That a field is of another type than expected.
    pub(super) fn wrong(&self, name: &str, expected: &str, found: &Json) -> Malformed {
        format!("{}: expected {expected}, found {}", self.path(name), found.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        let Ok(Json::Object(fields)) = Json::parse(text.as_bytes()) else { panic!("an object") };
        Fields::new("charges[1].".into(), fields)
    }

    #[test]
    fn errors_name_the_field_and_what_was_found() {
        let mut found = fields(r#"{"cost":-1,"key":7,"rule":"api"}"#);
        assert_eq!(
            found.whole("cost").unwrap_err(),
            "charges[1].cost: expected a whole number from 0 to 18446744073709551615, in digits only, found -1"
        );
        assert_eq!(found.text("key").unwrap_err(), "charges[1].key: expected a text in quotes, found 7");
        assert_eq!(found.required_text("rule"), Ok("api".into()));
        assert_eq!(found.required_whole("units").unwrap_err(), "charges[1].units: is missing; add it");
        assert_eq!(found.finish(), Ok(()));
    }

    #[test]
    fn what_nobody_asked_for_is_unknown() {
        let mut found = fields(r#"{"key":"a","csot":1}"#);
        found.text("key").unwrap();
        found.whole("cost").unwrap();
        assert_eq!(found.finish().unwrap_err(), "charges[1].csot: is not a field here; did you mean `cost`?");
    }
}
