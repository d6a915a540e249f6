//! Checks in their plainest form, which nearly all are, without a detour.
//!
//! What is taken here: `POST /v1/check` over HTTP/1.1 with a short body of known length that is as it should be, from
//! a client that may ask. Requests are looked at where they arrived, several that came together are answered together,
//! and an answer is one write. Whatever is otherwise, a header of another meaning included, leaves this way before it
//! has been touched, and hyper serves the connection from there on.
//!
//! With hyper alone a check costs twice the processor time in this process: its head and body take several allocations
//! and a channel each.

use httparse::{EMPTY_HEADER, Header, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::body::Request;
use super::connection::Shared;
use super::gate::Head;
use super::watch::{Stage, Watch};

/// Longest request that is taken here, head and body.
const BYTES_MAX: usize = 4 << 10;
/// Most headers that are looked at.
const HEADERS_MAX: usize = 32;
/// What room is made for before reading: most requests are shorter.
const READ_BYTES: usize = 1 << 10;
/// Answers that are collected before they are written.
const OUT_BYTES: usize = 64 << 10;

const START: &[u8] = b"POST /v1/check HTTP/1.1\r\n";

/// Why this way ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The connection has ended, or should.
    Ended,
    /// What follows is of another form; these bytes of it are here.
    Other(Vec<u8>),
}

/// Serves a connection for as long as its requests are plain.
pub(super) async fn serve(stream: &mut TcpStream, shared: &Shared, watch: &Watch) -> After {
    let mut arrived = Vec::new();
    let mut out = Vec::new();
    loop {
        let mut taken = 0;
        let after = loop {
            let rest = &arrived[taken..];
            let (body, end) = match find(rest, shared) {
                Found::Whole { body, end } => (body, end),
                other => break other,
            };
            let Some(request) = Request::read_good(&rest[body]) else {
                break Found::Other;
            };
            // A client that is told that the connection ends must not have sent more.
            let close = shared.is_draining() && !matches!(find(&rest[end..], shared), Found::Whole { .. });
            watch.enter(Stage::Answering);
            shared.handlers.check_plain(&request, close, &mut out).await;
            watch.enter(Stage::Idle);
            taken += end;
            if close || out.len() > OUT_BYTES {
                if stream.write_all(&out).await.is_err() || close {
                    return After::Ended;
                }
                out.clear();
            }
        };
        arrived.drain(..taken);
        if !out.is_empty() {
            if stream.write_all(&out).await.is_err() {
                return After::Ended;
            }
            out.clear();
        }
        if after == Found::Other || arrived.len() >= BYTES_MAX {
            return After::Other(arrived);
        }
        if !arrived.is_empty() {
            watch.arrived();
        }
        arrived.reserve(READ_BYTES);
        match stream.read_buf(&mut arrived).await {
            Ok(0) | Err(_) => return After::Ended,
            Ok(_) => watch.arrived(),
        }
    }
}

/// What there is at the beginning of the bytes.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// A plain request, up to `end`.
    Whole {
        body: std::ops::Range<usize>,
        end: usize,
    },
    /// What may become one.
    Part,
    Other,
}

fn find(bytes: &[u8], shared: &Shared) -> Found {
    let Some(rest) = bytes.strip_prefix(START) else {
        return if START.starts_with(bytes) { Found::Part } else { Found::Other };
    };
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let (head_bytes, headers) = match httparse::parse_headers(rest, &mut headers) {
        Ok(Status::Complete(parsed)) => parsed,
        Ok(Status::Partial) => return Found::Part,
        Err(_) => return Found::Other,
    };
    let Some((head, body_bytes)) = plain(headers) else {
        return Found::Other;
    };
    if shared.gate.pass(&head).is_err() {
        return Found::Other;
    }
    let start = START.len() + head_bytes;
    let end = start + body_bytes;
    if end > BYTES_MAX {
        return Found::Other;
    }
    if bytes.len() < end { Found::Part } else { Found::Whole { body: start..end, end } }
}

/// The head and the length of the body, if every header is of a meaning that is known here, or of none.
fn plain<'a>(headers: &[Header<'a>]) -> Option<(Head<'a>, usize)> {
    let mut head = Head { method: "POST", path: "/v1/check", ..Head::default() };
    let mut body_bytes = None;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let place = match header.name.len() {
            4 if is("host") => &mut head.host,
            6 if is("origin") => &mut head.origin,
            12 if is("content-type") => &mut head.content_type,
            13 if is("authorization") => &mut head.authorization,
            // Only pages of browsers send it.
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
        if place.replace(header.value).is_some() {
            return None;
        }
    }
    // A request without a host is none of HTTP/1.1.
    head.host?;
    Some((head, body_bytes?))
}

/// A length in digits, and few of them.
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
        plain(&headers)
    }

    const PLAIN: [(&str, &str); 3] =
        [("Host", "localhost"), ("Content-Type", "application/json"), ("content-length", "17")];

    #[test]
    fn a_plain_head_is_understood() {
        let (head, body_bytes) =
            headers(&[&PLAIN[..], &[("User-Agent", "x"), ("Connection", "Keep-Alive")]].concat()).unwrap();
        assert_eq!(
            (head.host, head.content_type, body_bytes),
            (Some(&b"localhost"[..]), Some(&b"application/json"[..]), 17)
        );
    }

    /// Anything that would change where a request ends, or who asks, is not for here.
    #[test]
    fn whatever_is_otherwise_is_left_to_hyper() {
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
