//! Answers and their encoding.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use hyper::StatusCode;
use serde::Serialize;
use slidegate::time::Clock;
use slidegate::{Applied, Decision, Verdict};

use crate::metrics::{CONTENT_TYPE as METRICS_TYPE, StoreCause};
use crate::receipts::ReceiptCodec;
use crate::text::whole_ms;

/// The length of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_BYTES: usize = 29;

/// An answer: status, header lines (`name: value\r\n`), body.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content: Content,
    /// Header lines besides those that every answer has.
    pub(super) lines: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Whether to close the connection after it.
    pub(super) close: bool,
}

/// The content type of a body.
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
    /// Serialised JSON.
    pub(super) fn json(status: u16, body: Vec<u8>) -> Self {
        Self { status, content: Content::Json, lines: Vec::new(), body, close: false }
    }

    /// A text.
    pub(super) fn text(status: u16, content: Content, body: String) -> Self {
        Self { content, ..Self::json(status, body.into_bytes()) }
    }

    /// A value as JSON.
    pub(super) fn of(value: &impl Serialize) -> Self {
        // The types of answers always serialise.
        Self::json(200, serde_json::to_vec(value).unwrap_or_default())
    }

    /// The result of a refund, a settlement, a credit or a reset.
    pub(super) fn applied(Applied { applied, units }: Applied) -> Self {
        Self::json(200, format!("{{\"applied\":{applied},\"units\":{units}}}").into_bytes())
    }

    /// Appends the answer, head and body.
    pub(super) fn write(&self, clock: &dyn Clock, out: &mut Vec<u8>) {
        match self.status {
            200 => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            429 => out.extend_from_slice(b"HTTP/1.1 429 Too Many Requests\r\n"),
            status => {
                let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
                out.extend_from_slice(b"HTTP/1.1 ");
                number(status.into(), out);
                out.push(b' ');
                out.extend_from_slice(reason.unwrap_or_default().as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(b"content-type: ");
        out.extend_from_slice(self.content.media_type().as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.lines);
        out.extend_from_slice(b"content-length: ");
        number(self.body.len() as u64, out);
        if self.close {
            out.extend_from_slice(b"\r\nconnection: close");
        }
        out.extend_from_slice(b"\r\ndate: ");
        out.extend_from_slice(&date(clock));
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&self.body);
    }
}

thread_local! {
    /// The last formatted date, and its seconds since 1970.
    static DATE: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [0; DATE_BYTES])) };
}

/// The HTTP date, formatted once per second.
pub(super) fn date(clock: &dyn Clock) -> [u8; DATE_BYTES] {
    let seconds = clock.now_us() / 1_000_000;
    let (of_seconds, date) = DATE.get();
    if of_seconds == seconds {
        return date;
    }
    let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let date = text.as_bytes().try_into().unwrap_or([b' '; DATE_BYTES]);
    DATE.set((seconds, date));
    date
}

/// Appends a number.
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a text in quotes.
fn text(value: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, value);
}

/// Appends `,"name":value`; null for an unknown value.
fn field(name: &str, value: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    match value {
        Some(value) => number(value, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Seconds, rounded up.
pub(super) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Appends a decision as JSON.
pub(super) fn write_decision(
    decision: &Decision<'_>,
    receipts: &ReceiptCodec,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let (binding, degraded) = (decision.binding(), decision.degraded());
    out.extend_from_slice(b"{\"allowed\":");
    out.extend_from_slice(if binding.allowed() { b"true" } else { b"false" });
    out.extend_from_slice(b",\"rule\":");
    text(binding.rule(), out);
    numbers(&binding, degraded, out);
    out.extend_from_slice(b",\"degraded\":");
    out.extend_from_slice(if degraded { b"true" } else { b"false" });
    if let Some(error) = decision.store_error() {
        out.extend_from_slice(b",\"cause\":");
        text(StoreCause::of(error).name(), out);
    }
    if !decision.atomic() {
        out.extend_from_slice(b",\"atomic\":false");
    }
    out.extend_from_slice(b",\"receipt\":");
    match decision.receipt() {
        Some(receipt) => {
            out.push(b'"');
            receipts.write(&receipt, scratch, out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
    if shows_verdicts(decision, binding.allowed()) {
        verdicts(decision, degraded, out);
    }
    out.push(b'}');
}

/// Whether there are several charges, or a verdict differs from the answer because a shadow rule would have denied.
fn shows_verdicts(decision: &Decision<'_>, allowed: bool) -> bool {
    let mut verdicts = decision.verdicts();
    let first = verdicts.next();
    verdicts.next().is_some() || first.is_some_and(|verdict| verdict.allowed() != allowed)
}

fn verdicts(decision: &Decision<'_>, degraded: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"checks\":[");
    for (index, verdict) in decision.verdicts().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"rule\":");
        text(verdict.rule(), out);
        out.extend_from_slice(b",\"key\":");
        text(verdict.key(), out);
        if let Some(tag) = verdict.tag() {
            out.extend_from_slice(b",\"tag\":");
            text(tag, out);
        }
        out.extend_from_slice(if verdict.allowed() { b",\"allowed\":true" } else { b",\"allowed\":false" });
        numbers(&verdict, degraded, out);
        if verdict.shadow() && !verdict.unlimited() && !degraded {
            out.extend_from_slice(b",\"shadow\":true");
        }
        out.push(b'}');
    }
    out.push(b']');
}

/// Appends the numbers of a verdict; null where they are unknown, as without the store. An unlimited key has waits of 0.
fn numbers(verdict: &Verdict<'_>, degraded: bool, out: &mut Vec<u8>) {
    field("limit", verdict.limit(), out);
    field("used", verdict.used(), out);
    field("remaining", verdict.remaining(), out);
    let is_known = !degraded || verdict.limit().is_some();
    let wait_ms = |wait: Option<Duration>| match wait {
        Some(wait) => is_known.then(|| whole_ms(wait)),
        None => (!degraded).then_some(0),
    };
    field("retry_after_ms", wait_ms(verdict.retry_after()), out);
    field("reset_after_ms", wait_ms(verdict.reset_after()), out);
}

#[cfg(test)]
mod tests {
    use slidegate::time::{ManualClock, TIME_MAX_US};
    use slidegate::{Limiter, Rule};

    use super::*;

    /// Nearly every decision is one step, so only the others say it.
    #[test]
    fn a_decision_of_several_steps_says_so() {
        let (limiter, receipts) = (Limiter::in_memory(), ReceiptCodec::new(&[7; 32]));
        let api = Rule::new("api", "9/1m").unwrap();
        let charges = ["alice", "bob"].map(|key| api.charge(key, 1).unwrap());
        let decision = limiter.check_all(&charges).unwrap();
        let written = |decision: &Decision<'_>| -> serde_json::Value {
            let mut out = Vec::new();
            write_decision(decision, &receipts, &mut Vec::new(), &mut out);
            serde_json::from_slice(&out).unwrap()
        };
        assert_eq!(written(&decision).get("atomic"), None);
        let divided = written(&decision.with_atomic(false));
        assert_eq!((&divided["atomic"], &divided["allowed"]), (&false.into(), &true.into()));
    }

    #[test]
    fn dates_have_the_http_format() {
        for (seconds, text) in [
            // A wall clock before 1970 shows zero.
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (TIME_MAX_US / 1_000_000, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778, "Sun, 06 Nov 1994 08:49:38 GMT"),
        ] {
            assert_eq!(date(&ManualClock::at_us(seconds * 1_000_000)), text.as_bytes());
        }
    }
}
