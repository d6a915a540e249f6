//! The fields of an object, taken out one by one, so that the fields left over are unknown ones.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::json::Json;
use super::{did_you_mean, excerpt, nearest};

/// What is wrong with a field; begins with its name.
pub(crate) type Malformed = String;

/// An object whose fields are being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The prefix of field names in errors, for example `charges[0].`.
    prefix: String,
    left: BTreeMap<String, Json>,
    /// The names that were taken, present or not.
    known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn new(prefix: String, fields: BTreeMap<String, Json>) -> Self {
        Self { prefix, left: fields, known: Vec::new() }
    }

    /// The name of a field in errors.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// A value of any type, if present.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Json> {
        self.known.push(name);
        self.left.remove(name)
    }

    /// A whole number, if present. `range` appears in the error only: the caller checks it.
    pub(crate) fn whole(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Whole(number)) => Ok(Some(number)),
            Some(other) => {
                let (min, max) = range.into_inner();
                let expected = format!("a whole number from {min} to {max}, in digits only");
                Err(self.wrong(name, &expected, &other))
            }
        }
    }

    /// A text, if present.
    pub(crate) fn text(&mut self, name: &'static str) -> Result<Option<String>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, "a text in quotes", &other)),
        }
    }

    /// A list, if present.
    pub(crate) fn list(&mut self, name: &'static str) -> Result<Option<Vec<Json>>, Malformed> {
        match self.take(name) {
            None => Ok(None),
            Some(Json::List(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(name, "a list in brackets", &other)),
        }
    }

    /// A required whole number.
    pub(crate) fn required_whole(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<u64, Malformed> {
        let found = self.whole(name, range)?;
        self.required(name, found)
    }

    /// A required text.
    pub(crate) fn required_text(&mut self, name: &'static str) -> Result<String, Malformed> {
        let found = self.text(name)?;
        self.required(name, found)
    }

    /// The value, or an error that the field is missing.
    pub(crate) fn required<T>(&self, name: &str, found: Option<T>) -> Result<T, Malformed> {
        found.ok_or_else(|| {
            let misspelt = self.left.keys().find(|left| nearest(left, [name].into_iter()).is_some());
            match misspelt {
                Some(misspelt) => self.unknown(misspelt, &[name]),
                None => format!("{}: is missing; add it", self.path(name)),
            }
        })
    }

    /// Refuses fields that were not taken.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(unknown) => Err(self.unknown(unknown, &self.known)),
        }
    }

    fn unknown(&self, name: &str, known: &[&str]) -> Malformed {
        format!("{}: is not a field here; {}", self.path(&excerpt(name)), did_you_mean(name, known))
    }

    /// An error that a field has the wrong type.
    pub(crate) fn wrong(&self, name: &str, expected: &str, found: &Json) -> Malformed {
        format!("{}: expected {expected}, found {}", self.path(name), found.kind())
    }
}
