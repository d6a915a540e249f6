//! Rate limit headers.
//!
//! `RateLimit-Policy` and `RateLimit` are lists of structured fields (RFC 9651) as in draft 11 of the IETF's rate limit
//! headers; the settings can add the two older sets. The headers show the binding limit of the decision.

use std::time::Duration;

use slidegate::Verdict;
use slidegate::time::Clock;

use super::reply::{number, whole_seconds};
use crate::service::HeaderSet;

/// Appends the headers of the binding verdict; only `Retry-After`, on a denial, for a decision without numbers.
pub(super) fn write(binding: &Verdict<'_>, sets: &[HeaderSet], clock: &dyn Clock, lines: &mut Vec<u8>) {
    if !binding.allowed() {
        // A wait that nobody knows is announced as the shortest one.
        line("retry-after", seconds(binding.retry_after()).max(1), lines);
    }
    let (Some(limit), Some(used), Some(remaining)) = (binding.limit(), binding.used(), binding.remaining())
    else {
        return;
    };
    let reset_seconds = until_more_seconds(binding, remaining);
    for set in sets {
        match set {
            HeaderSet::Draft11 => draft_11(binding, limit, remaining, reset_seconds, lines),
            HeaderSet::XRateLimit => {
                line("x-ratelimit-limit", limit, lines);
                line("x-ratelimit-remaining", remaining, lines);
                line("x-ratelimit-reset", reset_seconds, lines);
            }
            HeaderSet::GitHub => {
                line("x-ratelimit-limit", limit, lines);
                line("x-ratelimit-remaining", remaining, lines);
                line("x-ratelimit-used", used, lines);
                let now_seconds = clock.now_us().div_ceil(1_000_000);
                line("x-ratelimit-reset", now_seconds + reset_seconds, lines);
            }
        }
    }
}

/// Whole seconds, rounded up.
fn seconds(wait: Option<Duration>) -> u64 {
    wait.map_or(0, whole_seconds)
}

/// Seconds until this request passes, if it was denied with nothing left; else until nothing is used. After an
/// admission that took the last units, only the latter is known.
fn until_more_seconds(binding: &Verdict<'_>, remaining: u64) -> u64 {
    let passes = binding.retry_after().filter(|_| remaining == 0 && !binding.allowed());
    seconds(passes.or(binding.reset_after()))
}

fn draft_11(binding: &Verdict<'_>, limit: u64, remaining: u64, reset_seconds: u64, lines: &mut Vec<u8>) {
    lines.extend_from_slice(b"ratelimit-policy: ");
    name(binding.rule(), lines);
    parameter(b";q=", limit, lines);
    // The draft has no windows shorter than a second.
    if let Some(window) = binding.window().filter(|window| window.as_secs() > 0) {
        parameter(b";w=", whole_seconds(window), lines);
    }
    lines.extend_from_slice(b"\r\nratelimit: ");
    name(binding.rule(), lines);
    parameter(b";r=", remaining, lines);
    parameter(b";t=", reset_seconds, lines);
    lines.extend_from_slice(b"\r\n");
}

/// Rule names are printable ASCII without quotes and backslashes, so they need no escaping.
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
