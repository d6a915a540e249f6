//! Problems: error answers as `application/problem+json` (RFC 9457).

use serde::Serialize;

use super::reply::{Content, Reply};
use crate::service::{ServiceError, ServiceErrorKind};
use crate::text::escaped;

/// A problem document with its headers. Boxed, so that results that contain it stay small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem(Box<Document>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: String,
    /// The wrong field: a JSON pointer into the body, or the name of a header, a query parameter or another part of the
    /// request.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// Present when the store did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    degraded: Option<bool>,
    /// Present when the store did not answer: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    /// Present when the store did not answer: whether the charge may have been made.
    #[serde(skip_serializing_if = "Option::is_none")]
    maybe_charged: Option<bool>,
    /// Its header lines.
    #[serde(skip)]
    lines: &'static str,
}

/// Status, name and title of a problem.
type ProblemKind = (u16, &'static str, &'static str);

const MALFORMED: ProblemKind = (400, "malformed", "The request is not understood");
pub(super) const FOREIGN: ProblemKind = (403, "foreign", "The request comes from another site");
pub(super) const SCOPE: ProblemKind = (403, "scope", "The token does not permit it");
pub(super) const UNKNOWN_ROUTE: ProblemKind = (404, "unknown-route", "There is nothing at this path");
pub(super) const NO_FILE: ProblemKind = (409, "no-file", "There is no configuration file");
pub(super) const BAD_FILE: ProblemKind = (422, "configuration", "The configuration is not accepted");
pub(super) const STORE_NOT_MIGRATED: ProblemKind =
    (503, "store-migration", "The store did not migrate its states");

impl Problem {
    /// A problem from a text of the form `field: what is wrong; remedy`.
    pub(super) fn new((status, name, title): ProblemKind, text: &str) -> Self {
        // A text that ends with a quote ends with user input, which may contain "; ".
        let (what, remedy) = match text.rsplit_once("; ").filter(|_| !text.ends_with('"')) {
            Some((what, remedy)) => (what, Some(escaped(remedy))),
            None => (text, expected(text).map(|expected| format!("send {}", escaped(expected)))),
        };
        let field = what.split_once(": ").map(|(field, _)| field).filter(|field| !field.contains(' '));
        Self(Box::new(Document {
            kind: format!("urn:slidegate:problem:{name}"),
            title,
            status,
            detail: escaped(what),
            field: field.map(|field| escaped(&pointer(field))),
            remedy,
            degraded: None,
            cause: None,
            maybe_charged: None,
            lines: "",
        }))
    }

    fn with_lines(mut self, lines: &'static str) -> Self {
        self.0.lines = lines;
        self
    }

    pub(super) fn malformed(text: &str) -> Self {
        Self::new(MALFORMED, text)
    }

    pub(super) fn unauthorized(text: &str) -> Self {
        let problem = Self::new((401, "unauthorized", "The request has no valid token"), text);
        problem.with_lines("www-authenticate: Bearer\r\n")
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let text = format!("method: is not for this path; use {allowed}");
        let lines = if allowed == "GET" { "allow: GET\r\n" } else { "allow: POST\r\n" };
        Self::new((405, "method", "The path needs another method"), &text).with_lines(lines)
    }

    pub(super) fn late(what: &str) -> Self {
        let text = format!("{what} did not arrive in time; send it at once, or raise request_time");
        Self::new((408, "timeout", "The request did not arrive in time"), &text)
    }

    pub(super) fn too_large(bytes_max: usize) -> Self {
        let text = format!("body: has more than {bytes_max} bytes; send fewer checks at once");
        Self::new((413, "body-too-large", "The body is too large"), &text)
    }

    pub(super) fn content_type() -> Self {
        let text = "content-type: is not application/json; send `content-type: application/json`";
        Self::new((415, "content-type", "The body is not JSON"), text)
    }

    pub(super) fn head_too_large(header_bytes_max: usize) -> Self {
        let text = format!("headers: are more than {header_bytes_max} bytes or too many; send fewer");
        Self::new((431, "head-too-large", "The head of the request is too large"), &text)
    }

    pub(super) fn not_http() -> Self {
        Self::malformed("the head of the request is not HTTP/1.1; send HTTP/1.1")
    }

    pub(super) fn busy(connections_max: usize) -> Self {
        let text = format!(
            "all {connections_max} connections are taken; keep fewer open, or raise the bound `connections`"
        );
        Self::new((503, "busy", "The server has no connection left"), &text)
    }

    pub(super) fn clock() -> Self {
        let text = "the clock of the server's machine shows a time before 1970, by which only plain checks are answered; set the clock";
        Self::new((503, "clock", "The server's clock is wrong"), text)
    }

    pub(super) fn buffers_full(bytes_max: usize) -> Self {
        let text = format!(
            "requests that are arriving fill all {bytes_max} bytes of bounds.buffer_bytes; try again in a second, send smaller bodies, or raise bounds.buffer_bytes"
        );
        let problem = Self::new((503, "buffers-full", "The server has no room for the request"), &text);
        problem.with_lines("retry-after: 1\r\n")
    }

    /// Prefixes the field, which the detail begins with, by a part of the body: `checks[3]`.
    pub(super) fn within(mut self, part: &str) -> Self {
        if let Some(field) = self.0.field.as_mut().filter(|field| field.starts_with('/')) {
            field.insert_str(0, &pointer(part));
            self.0.detail.insert_str(0, &format!("{part}."));
        }
        self
    }

    /// Appends the document.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        // Serialising strings and numbers to memory does not fail.
        let _ = serde_json::to_writer(out, &self.0);
    }

    pub(super) fn reply(&self) -> Reply {
        let (status, lines) = (self.0.status, self.0.lines.into());
        Reply { status, content: Content::Problem, lines, ..Reply::of(&self.0) }
    }
}

impl From<ServiceError> for Problem {
    fn from(failure: ServiceError) -> Self {
        let about = match failure.kind {
            ServiceErrorKind::Malformed => MALFORMED,
            ServiceErrorKind::Receipt => (400, "bad-receipt", "The receipt is not accepted"),
            ServiceErrorKind::UnknownRule => (404, "unknown-rule", "There is no such rule"),
            ServiceErrorKind::InlineForbidden => (403, "inline-forbidden", "Inline rules are not allowed"),
            ServiceErrorKind::InlineBound => (400, "inline-bound", "The inline rule is beyond a bound"),
            ServiceErrorKind::Blocked => (403, "blocked", "The key is blocked"),
            ServiceErrorKind::Never => (422, "never", "The cost is above the limit"),
            ServiceErrorKind::Actual => (422, "actual", "The receipt cannot be settled for that"),
            ServiceErrorKind::Store { .. } => (503, "store", "The store did not answer"),
        };
        let mut problem = Self::new(about, &failure.text);
        if let ServiceErrorKind::Store { cause, maybe_charged } = failure.kind {
            (problem.0.degraded, problem.0.maybe_charged) = (Some(true), Some(maybe_charged));
            problem.0.cause = Some(cause.name());
        }
        match failure.at {
            Some(at) => problem.within(&format!("checks[{at}]")),
            None => problem,
        }
    }
}

/// `checks[0].cost` as `/checks/0/cost`; names outside the body stay as they are.
fn pointer(field: &str) -> String {
    match field {
        "body" | "content-type" | "host" | "origin" | "authorization" | "method" | "path" | "store"
        | "headers" | "sec-fetch-site" | "query" | "n" => field.to_owned(),
        field => format!("/{}", field.replace(['[', '.'], "/").replace(']', "")),
    }
}

/// The expectation in `field: expected this, found that`.
fn expected(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(": expected ")?;
    rest.split_once(", found ").map(|(expected, _)| expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_into_field_detail_and_remedy() {
        let problem =
            Problem::malformed("checks[12].rule.limit: expected a whole number; write 5").within("checks[3]");
        let written = serde_json::to_value(&problem.0).unwrap();
        assert_eq!(
            written,
            serde_json::json!({
                "type": "urn:slidegate:problem:malformed",
                "title": "The request is not understood",
                "status": 400,
                "detail": "checks[3].checks[12].rule.limit: expected a whole number",
                "field": "/checks/3/checks/12/rule/limit",
                "remedy": "write 5",
            })
        );
    }

    /// A JSON pointer would send the reader to a member of the body that does not exist.
    #[test]
    fn headers_and_query_parameters_are_named_without_a_pointer() {
        for field in ["sec-fetch-site", "n", "origin", "body"] {
            assert_eq!(
                Problem::malformed(&format!("{field}: is wrong; fix it")).0.field.as_deref(),
                Some(field)
            );
        }
        assert_eq!(Problem::malformed("key: is empty; name one").0.field.as_deref(), Some("/key"));
    }

    #[test]
    fn a_text_without_a_field_has_none() {
        let problem = Problem::malformed("all of it is wrong: really");
        assert_eq!((problem.0.field, problem.0.remedy), (None, None));
    }
}
