//! Answers, before they are put on a connection.

use std::time::Duration;

use slidegate::{Applied, ChargeRequest, Decision, Verdict};

use crate::metrics::CONTENT_TYPE as METRICS_TYPE;
use crate::receipts::ReceiptText;
use crate::service::{Checked, Said};

/// An answer: status, lines of the head (`name: value\r\n`), body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content: Content,
    /// Besides those that every answer has.
    pub(super) lines: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Whether the connection ends with it.
    pub(super) close: bool,
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Json,
    Problem,
    Text,
    Metrics,
}

impl Content {
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Problem => "application/problem+json",
            Self::Text => "text/plain; charset=utf-8",
            Self::Metrics => METRICS_TYPE,
        }
    }
}

impl Reply {
    /// JSON that is already written.
    pub(super) fn json(status: u16, body: Vec<u8>) -> Self {
        Self { status, content: Content::Json, lines: Vec::new(), body, close: false }
    }

    /// Text of some kind.
    pub(super) fn text(status: u16, content: Content, body: String) -> Self {
        Self { content, ..Self::json(status, body.into_bytes()) }
    }

    /// What a refund, a settlement, a credit or a reset did.
    pub(super) fn applied(Applied { applied, units }: Applied) -> Self {
        Self::json(200, format!("{{\"applied\":{applied},\"units\":{units}}}").into_bytes())
    }
}

/// Appends a number.
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a text in quotes.
pub(super) fn text(value: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

/// Appends `,"name":value`.
pub(super) fn field(name: &str, value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    number(value, out);
}

/// Milliseconds, rounded up: whoever waits so long does not come too early.
pub(super) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Seconds, rounded up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Appends the answer to a check or a peek.
pub(super) fn checked(
    checked: &Checked<'_>,
    requests: &[ChargeRequest<'_>],
    receipts: &ReceiptText,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let (decision, receipt) = match &checked.said {
        Said::Decided { decision, receipt } => (decision, receipt),
        Said::Unlimited { rule } => return without_numbers(rule, requests, false, out),
        Said::Degraded { rule } => return without_numbers(rule, requests, true, out),
    };
    out.extend_from_slice(if decision.allowed() { b"{\"allowed\":true" } else { b"{\"allowed\":false" });
    out.extend_from_slice(b",\"rule\":");
    text(decision.rule(), out);
    field("limit", decision.limit(), out);
    field("used", decision.used(), out);
    field("remaining", decision.remaining(), out);
    field("retry_after_ms", whole_ms(decision.retry_after()), out);
    field("reset_after_ms", whole_ms(decision.reset_after()), out);
    out.extend_from_slice(b",\"degraded\":false,\"receipt\":");
    match receipt {
        Some(receipt) => {
            out.push(b'"');
            receipts.write(receipt, scratch, out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    if shows_verdicts(decision, requests) {
        verdicts(decision, requests, &checked.is_free, out);
    }
    out.push(b'}');
}

/// For several charges, or where a verdict differs from the answer: a shadow rule that would have refused.
fn shows_verdicts(decision: &Decision<'_>, requests: &[ChargeRequest<'_>]) -> bool {
    requests.len() > 1 || decision.verdicts().iter().any(|verdict| verdict.allowed() != decision.allowed())
}

fn verdicts(decision: &Decision<'_>, requests: &[ChargeRequest<'_>], is_free: &[bool], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"checks\":[");
    let mut verdicts = decision.verdicts().iter();
    for (index, request) in requests.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let free = is_free.get(index).copied().unwrap_or(false);
        verdict(if free { None } else { verdicts.next() }, request, out);
    }
    out.push(b']');
}

/// What was said to one charge; `None` if an override lets it pass for free.
fn verdict(verdict: Option<&Verdict<'_>>, request: &ChargeRequest<'_>, out: &mut Vec<u8>) {
    let Some(verdict) = verdict else {
        return passed(request, b"0", out);
    };
    out.extend_from_slice(b"{\"rule\":");
    text(verdict.rule(), out);
    out.extend_from_slice(b",\"key\":");
    text(&request.key, out);
    out.extend_from_slice(if verdict.allowed() { b",\"allowed\":true" } else { b",\"allowed\":false" });
    field("limit", verdict.limit(), out);
    field("used", verdict.used(), out);
    field("remaining", verdict.remaining(), out);
    field("retry_after_ms", whole_ms(verdict.retry_after()), out);
    field("reset_after_ms", whole_ms(verdict.reset_after()), out);
    if verdict.shadow() {
        out.extend_from_slice(b",\"shadow\":true");
    }
    out.push(b'}');
}

/// A charge that passed without numbers; both waits are `wait`.
fn passed(request: &ChargeRequest<'_>, wait: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"rule\":");
    text(request.rule.name(), out);
    out.extend_from_slice(b",\"key\":");
    text(&request.key, out);
    out.extend_from_slice(b",\"allowed\":true");
    numbers_unknown(wait, out);
    out.push(b'}');
}

fn numbers_unknown(wait: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"limit\":null,\"used\":null,\"remaining\":null,\"retry_after_ms\":");
    out.extend_from_slice(wait);
    out.extend_from_slice(b",\"reset_after_ms\":");
    out.extend_from_slice(wait);
}

/// An admission of which no numbers are known, or that has none.
fn without_numbers(rule: &str, requests: &[ChargeRequest<'_>], degraded: bool, out: &mut Vec<u8>) {
    let wait = if degraded { &b"null"[..] } else { b"0" };
    out.extend_from_slice(b"{\"allowed\":true,\"rule\":");
    text(rule, out);
    numbers_unknown(wait, out);
    out.extend_from_slice(if degraded { b",\"degraded\":true" } else { &b",\"degraded\":false"[..] });
    out.extend_from_slice(b",\"receipt\":null");
    if requests.len() > 1 {
        out.extend_from_slice(b",\"checks\":[");
        for (index, request) in requests.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            passed(request, wait, out);
        }
        out.push(b']');
    }
    out.push(b'}');
}
