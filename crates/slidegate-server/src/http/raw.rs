//! Answers as bytes.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use hyper::StatusCode;
use slidegate::time::Clock;

use super::reply::{Reply, number};

/// The length of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_BYTES: usize = 29;

/// Appends a whole answer.
pub(super) fn write(reply: &Reply, clock: &impl Clock, out: &mut Vec<u8>) {
    match reply.status {
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
    out.extend_from_slice(reply.content.media_type().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&reply.lines);
    out.extend_from_slice(b"content-length: ");
    number(reply.body.len() as u64, out);
    out.extend_from_slice(if reply.close { b"\r\nconnection: close\r\ndate: " } else { &b"\r\ndate: "[..] });
    out.extend_from_slice(&date(clock.now_us() / 1_000_000));
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(&reply.body);
}

thread_local! {
    /// The date that was written last, with its seconds since 1970.
    static DATE: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [0; DATE_BYTES])) };
}

/// The date of so many seconds since 1970. It is put together once a second.
fn date(seconds: u64) -> [u8; DATE_BYTES] {
    let (of_seconds, date) = DATE.get();
    if of_seconds == seconds {
        return date;
    }
    let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let date = text.as_bytes().try_into().unwrap_or([b' '; DATE_BYTES]);
    DATE.set((seconds, date));
    date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        for (seconds, text) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778, "Sun, 06 Nov 1994 08:49:38 GMT"),
        ] {
            assert_eq!(date(seconds), text.as_bytes());
        }
    }
}
