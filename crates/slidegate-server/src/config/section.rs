//! A mapping of the file, read field by field. All its mistakes are collected.

use serde_saphyr::{Location, Spanned};

use super::finding::Findings;
use super::node::{Node, YamlValue};
use crate::text::{did_you_mean, excerpt};

/// The mistake for a planned field that this version does not support.
pub(super) const UNSUPPORTED: &str = "is not supported by this version; remove it";

/// The fields of a mapping.
pub(super) struct Section<'a, 'f> {
    /// The prefix of field names in mistakes, for example "rule `api`: ".
    prefix: String,
    pub(super) fields: &'a [(Spanned<String>, Node)],
    pub(super) findings: &'f mut Findings,
    findings_before: usize,
}

impl<'a, 'f> Section<'a, 'f> {
    /// The fields of `node`; anything but a mapping is a mistake.
    pub(super) fn open(
        prefix: String,
        node: &'a Node,
        (expected, example): (&str, &str),
        findings: &'f mut Findings,
    ) -> Option<Self> {
        let YamlValue::Map(fields) = &node.value else {
            let kind = node.value.kind();
            findings
                .add(node.referenced, &format!("{prefix}expected {expected}, found {kind}; write {example}"));
            return None;
        };
        let findings_before = findings.list.len();
        Some(Self { prefix, fields, findings, findings_before })
    }

    pub(super) fn mistake(&mut self, at: Location, text: &str) {
        self.findings.add(at, &format!("{}{text}", self.prefix));
    }

    /// Whether the section has no mistakes so far.
    pub(super) fn has_no_mistakes(&self) -> bool {
        self.findings.list.len() == self.findings_before
    }

    /// A field, if present.
    pub(super) fn node(&self, name: &str) -> Option<&'a Node> {
        self.fields.iter().find(|(field, _)| field.value == name).map(|(_, node)| node)
    }

    /// Reads a field, if present and valid.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a Node) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.node(name)?;
        read(node).map_err(|text| self.mistake(node.referenced, &format!("{name}: {text}"))).ok()
    }

    /// Refuses a name that is not in `known`, or that is in `refused`, which gives the reason.
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
