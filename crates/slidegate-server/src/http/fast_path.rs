//! The fast path for plain checks, which nearly all requests are.
//!
//! A plain check is `POST /v1/check` over HTTP/1.1 with a short, valid body of known length, from a client that has
//! access. It is parsed in the read buffer; pipelined requests are answered in one write. Any other request, such as
//! one with a header that changes its framing, leaves the fast path untouched, and hyper serves the connection from
//! then on.
//!
//! With hyper alone a check costs 1.76 times the processor time in this process: head and body take several allocations
//! and a channel each.

use std::io;

use httparse::{EMPTY_HEADER, Header, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::access::Head;
use super::body::CheckBody;
use super::connection::{Shared, Stream};
use super::watchdog::{RequestProgress, Stage};

/// Longest plain request, head and body.
const BYTES_MAX: usize = 4 << 10;
/// Most headers of a plain request.
const HEADERS_MAX: usize = 32;
/// Buffer space reserved for each read: most requests are shorter.
const READ_BYTES: usize = 1 << 10;
/// Bytes of answers that are buffered before they are written.
const OUT_BYTES: usize = 8 << 10;

const START: &[u8] = b"POST /v1/check HTTP/1.1\r\n";

/// Why a connection leaves the fast path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FastPathEnd {
    /// The connection is closed, or should be.
    Closed,
    /// The next request is not plain; the bytes read of it.
    NotPlain(Vec<u8>),
}

/// Serves a connection while its requests are plain.
pub(super) async fn serve(
    stream: &mut impl Stream,
    shared: &Shared,
    progress: &RequestProgress,
) -> FastPathEnd {
    let mut arrived = Vec::new();
    let mut out = Vec::new();
    loop {
        let mut taken = 0;
        let after = loop {
            let rest = &arrived[taken..];
            let (body, end) = match next_request(rest, shared) {
                NextRequest::Complete { body, end } => (body, end),
                other => break other,
            };
            let Some(request) = CheckBody::read_valid(&rest[body]) else {
                break NextRequest::NotPlain;
            };
            // `connection: close` may only answer the last pipelined request.
            let close = shared.is_draining()
                && !matches!(next_request(&rest[end..], shared), NextRequest::Complete { .. });
            progress.enter(Stage::Answering);
            shared.handlers.check_fast_path(&request, close, &mut out).await;
            progress.enter(Stage::Idle);
            taken += end;
            if close {
                // With or without the answers, the connection ends here.
                let _ = send(stream, &mut out).await;
                return FastPathEnd::Closed;
            }
            if out.len() > OUT_BYTES && send(stream, &mut out).await.is_err() {
                return FastPathEnd::Closed;
            }
        };
        arrived.drain(..taken);
        if !out.is_empty() && send(stream, &mut out).await.is_err() {
            return FastPathEnd::Closed;
        }
        if after == NextRequest::NotPlain || arrived.len() >= BYTES_MAX {
            return FastPathEnd::NotPlain(arrived);
        }
        if !arrived.is_empty() {
            progress.arrived();
        }
        arrived.reserve(READ_BYTES);
        match stream.read_buf(&mut arrived).await {
            Ok(0) | Err(_) => return FastPathEnd::Closed,
            Ok(_) => progress.arrived(),
        }
    }
}

/// Writes the answers. A connection that waits for its next request keeps a small buffer.
async fn send(stream: &mut impl Stream, out: &mut Vec<u8>) -> io::Result<()> {
    stream.write_all(out).await?;
    // TLS may hold bytes back until it is flushed.
    stream.flush().await?;
    out.clear();
    out.shrink_to(OUT_BYTES);
    Ok(())
}

/// The request at the start of the read buffer.
#[derive(Debug, PartialEq, Eq)]
enum NextRequest {
    /// A plain request, up to `end`.
    Complete {
        body: std::ops::Range<usize>,
        end: usize,
    },
    /// The start of a request that may be plain.
    Incomplete,
    NotPlain,
}

fn next_request(bytes: &[u8], shared: &Shared) -> NextRequest {
    let Some(rest) = bytes.strip_prefix(START) else {
        return if START.starts_with(bytes) { NextRequest::Incomplete } else { NextRequest::NotPlain };
    };
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let (head_bytes, headers) = match httparse::parse_headers(rest, &mut headers) {
        Ok(Status::Complete(parsed)) => parsed,
        Ok(Status::Partial) => return NextRequest::Incomplete,
        Err(_) => return NextRequest::NotPlain,
    };
    let Some((head, body_bytes)) = plain_head(headers) else {
        return NextRequest::NotPlain;
    };
    if shared.access.route(&head).is_err() {
        return NextRequest::NotPlain;
    }
    let start = START.len() + head_bytes;
    let end = start + body_bytes;
    if end > BYTES_MAX {
        return NextRequest::NotPlain;
    }
    if bytes.len() < end { NextRequest::Incomplete } else { NextRequest::Complete { body: start..end, end } }
}

/// The head and the length of the body, unless a header makes the request not plain.
fn plain_head<'a>(headers: &[Header<'a>]) -> Option<(Head<'a>, usize)> {
    let mut head = Head { method: "POST", path: "/v1/check", ..Head::default() };
    let mut body_bytes = None;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let field = match header.name.len() {
            4 if is("host") => &mut head.host,
            6 if is("origin") => &mut head.origin,
            12 if is("content-type") => &mut head.content_type,
            13 if is("authorization") => &mut head.authorization,
            // Only browsers send it.
            14 if is("sec-fetch-site") => return None,
            14 if is("content-length") => {
                if body_bytes.replace(length(header.value)?).is_some() {
                    return None;
                }
                continue;
            }
            10 if is("connection") => {
                if !header.value.eq_ignore_ascii_case(b"keep-alive") {
                    return None;
                }
                continue;
            }
            6 if is("expect") => return None,
            7 if is("upgrade") => return None,
            17 if is("transfer-encoding") => return None,
            _ => continue,
        };
        if field.replace(header.value).is_some() {
            return None;
        }
    }
    // HTTP/1.1 requires a host.
    head.host?;
    Some((head, body_bytes?))
}

/// A length of one to five digits.
fn length(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > 5 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers<'a>(given: &[(&'a str, &'a str)]) -> Option<(Head<'a>, usize)> {
        let headers: Vec<_> =
            given.iter().map(|&(name, value)| Header { name, value: value.as_bytes() }).collect();
        plain_head(&headers)
    }

    const PLAIN: [(&str, &str); 3] =
        [("Host", "localhost"), ("Content-Type", "application/json"), ("content-length", "17")];

    #[test]
    fn a_plain_head_is_parsed() {
        let (head, body_bytes) =
            headers(&[&PLAIN[..], &[("User-Agent", "x"), ("Connection", "Keep-Alive")]].concat()).unwrap();
        assert_eq!(
            (head.host, head.content_type, body_bytes),
            (Some(&b"localhost"[..]), Some(&b"application/json"[..]), 17)
        );
    }

    /// Headers that change the framing or the access of a request leave the fast path.
    #[test]
    fn other_heads_are_left_to_hyper() {
        for more in [
            ("Transfer-Encoding", "chunked"),
            ("transfer-encoding", "identity"),
            ("Expect", "100-continue"),
            ("Upgrade", "h2c"),
            ("Connection", "close"),
            ("Connection", "keep-alive, upgrade"),
            ("Content-Length", "17"),
            ("Content-Length", "18"),
            ("HOST", "localhost"),
            ("Sec-Fetch-Site", "cross-site"),
            ("content-type", "application/json"),
        ] {
            assert!(headers(&[&PLAIN[..], &[more]].concat()).is_none(), "{more:?}");
        }
        for length in ["", "+17", "-1", "1 7", "17,17", "0x11", "123456", "17 "] {
            let given = [PLAIN[0], PLAIN[1], ("content-length", length)];
            assert!(headers(&given).is_none(), "{length:?}");
        }
        assert!(headers(&PLAIN[..2]).is_none(), "no length");
        assert!(headers(&PLAIN[1..]).is_none(), "no host");
    }
}
