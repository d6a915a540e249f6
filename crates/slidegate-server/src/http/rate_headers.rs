//! Headers that tell callers where they stand.
//!
//! `RateLimit-Policy` and `RateLimit` are lists of structured fields (RFC 9651) as in draft 11 of the IETF's rate
//! limit headers; the two older sets go with them where the settings say so. A decision speaks through the limit that
//! binds it, and so do the headers.

use slidegate::Decision;
use slidegate::time::Clock;

use super::reply::{number, whole_seconds};
use crate::service::HeaderSet;

/// Appends the lines that go with a decision.
pub(super) fn write(decision: &Decision<'_>, sets: &[HeaderSet], clock: &impl Clock, lines: &mut Vec<u8>) {
    let (limit, remaining) = (decision.limit(), decision.remaining());
    let reset_seconds = until_more_seconds(decision);
    for set in sets {
        match set {
            HeaderSet::Draft11 => draft_11(decision, reset_seconds, lines),
            HeaderSet::XRateLimit => {
                line("x-ratelimit-limit", limit, lines);
                line("x-ratelimit-remaining", remaining, lines);
                line("x-ratelimit-reset", reset_seconds, lines);
            }
            HeaderSet::GitHub => {
                line("x-ratelimit-limit", limit, lines);
                line("x-ratelimit-remaining", remaining, lines);
                line("x-ratelimit-used", decision.used(), lines);
                let now_seconds = clock.now_us().div_ceil(1_000_000);
                line("x-ratelimit-reset", now_seconds + reset_seconds, lines);
            }
        }
    }
}

/// Appends `retry-after`: whole seconds, rounded up, at least 1.
pub(super) fn retry_after(decision: &Decision<'_>, lines: &mut Vec<u8>) {
    line("retry-after", whole_seconds(decision.retry_after()).max(1), lines);
}

/// Seconds until this request passes where nothing is left for it, else until nothing is used. Of an admission
/// that took the last units it is not known when the first of them come back, only when all will have.
fn until_more_seconds(decision: &Decision<'_>) -> u64 {
    let denied_empty = decision.remaining() == 0 && !decision.allowed();
    whole_seconds(if denied_empty { decision.retry_after() } else { decision.reset_after() })
}

fn draft_11(decision: &Decision<'_>, reset_seconds: u64, lines: &mut Vec<u8>) {
    lines.extend_from_slice(b"ratelimit-policy: ");
    name(decision.rule(), lines);
    parameter(b";q=", decision.limit(), lines);
    let window = decision.window();
    // The draft has no windows below a second.
    if window.as_secs() > 0 {
        parameter(b";w=", whole_seconds(window), lines);
    }
    lines.extend_from_slice(b"\r\nratelimit: ");
    name(decision.rule(), lines);
    parameter(b";r=", decision.remaining(), lines);
    parameter(b";t=", reset_seconds, lines);
    lines.extend_from_slice(b"\r\n");
}

/// A name of a rule is printable ASCII without quotes and backslashes: it needs no escaping.
fn name(rule: &str, lines: &mut Vec<u8>) {
    lines.push(b'"');
    lines.extend_from_slice(rule.as_bytes());
    lines.push(b'"');
}

fn parameter(name: &[u8], value: u64, lines: &mut Vec<u8>) {
    lines.extend_from_slice(name);
    number(value, lines);
}

fn line(name: &str, value: u64, lines: &mut Vec<u8>) {
    lines.extend_from_slice(name.as_bytes());
    lines.extend_from_slice(b": ");
    number(value, lines);
    lines.extend_from_slice(b"\r\n");
}
