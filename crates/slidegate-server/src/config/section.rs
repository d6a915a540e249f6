//! A mapping of a file, read field by field. Everything that is wrong with it is collected.

use serde_saphyr::{Location, Spanned};

use super::mistake::Findings;
use super::node::{Node, Value};
use crate::text::{did_you_mean, excerpt};

/// Why a field that is promised is refused.
pub(super) const LATER: &str = "is not supported by this version; remove it";

/// The fields of a mapping.
pub(super) struct Section<'a, 'f> {
    /// What stands before a field's name in mistakes, for example "rule `api`: ".
    prefix: String,
    pub(super) fields: &'a [(Spanned<String>, Node)],
    pub(super) found: &'f mut Findings,
    found_before: usize,
}

impl<'a, 'f> Section<'a, 'f> {
    /// The fields of `node`; where it is no mapping, that is a mistake.
    pub(super) fn open(
        prefix: String,
        node: &'a Node,
        (expected, example): (&str, &str),
        found: &'f mut Findings,
    ) -> Option<Self> {
        let Value::Map(fields) = &node.value else {
            let kind = node.value.kind();
            found
                .add(node.referenced, &format!("{prefix}expected {expected}, found {kind}; write {example}"));
            return None;
        };
        let found_before = found.found.len();
        Some(Self { prefix, fields, found, found_before })
    }

    pub(super) fn mistake(&mut self, at: Location, text: &str) {
        self.found.add(at, &format!("{}{text}", self.prefix));
    }

    /// Whether no mistake was found.
    pub(super) fn is_good(&self) -> bool {
        self.found.found.len() == self.found_before
    }

    /// A field, if it is there.
    pub(super) fn node(&self, name: &str) -> Option<&'a Node> {
        self.fields.iter().find(|(field, _)| field.value == name).map(|(_, node)| node)
    }

    /// Reads a field, if it is there.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a Node) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.node(name)?;
        read(node).map_err(|text| self.mistake(node.referenced, &format!("{name}: {text}"))).ok()
    }

    /// Refuses a name that is not one of `known`, or that is one of `refused`, each with its reason.
    pub(super) fn check_name(
        &mut self,
        Spanned { value: name, referenced: at, .. }: &Spanned<String>,
        known: &[&str],
        refused: &[(&str, &str)],
        unknown: &str,
    ) {
        if let Some((_, why)) = refused.iter().find(|(field, _)| field == name) {
            self.mistake(*at, &format!("{name}: {why}"));
        } else if !known.contains(&name.as_str()) {
            let text = format!("{}: {unknown}; {}", excerpt(name), did_you_mean(name, known));
            self.mistake(*at, &text);
        }
    }
}
