//! A minimal HTTP/1.1 client: one request per connection.
//!
//! A command sends one request and ends, so it starts no runtime. The client understands the framings of responses: a
//! length, chunks, or the end of the connection.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use slidegate::store::StoreError;
use slidegate::time::{Clock, SystemClock};

use super::location::ServerUrl;

/// Time limit for the whole exchange.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Most interim responses (1xx) before the final one.
const INTERIM_MAX: usize = 8;
/// Largest response. The largest answer, to 64 charges of long keys, is below 100 KiB.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Sends a POST and reads the response. The error says whether the request may have been executed.
pub(super) fn post(
    url: &ServerUrl,
    path: &str,
    token: Option<&str>,
    body: &[u8],
) -> Result<HttpResponse, StoreError> {
    let deadline = Deadline::start();
    let mut stream = connect(url, &deadline).map_err(|error| StoreError::Unavailable {
        why: format!("http://{}: {}; is the server running there?", url.authority, described(&error)).into(),
    })?;
    let authorization = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
    let (host, length) = (&url.authority, body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         {authorization}connection: close\r\n\r\n"
    );
    exchange(&mut stream, &[head.as_bytes(), body].concat(), &deadline).map_err(|error| {
        StoreError::Ambiguous {
            why: format!("http://{}: {}; look at the server's log", url.authority, described(&error)).into(),
        }
    })
}

fn described(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => format!("no answer within {TIME_MAX:?}"),
        _ => error.to_string(),
    }
}

struct Deadline {
    clock: SystemClock,
    end_us: u64,
}

impl Deadline {
    fn start() -> Self {
        let clock = SystemClock::new();
        Self { end_us: clock.now_us() + TIME_MAX.as_secs() * 1_000_000, clock }
    }

    fn left(&self) -> io::Result<Duration> {
        let left_us = self.end_us.saturating_sub(self.clock.now_us());
        if left_us == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Duration::from_micros(left_us)) }
    }
}

/// Connects to the first address of the host that accepts.
fn connect(url: &ServerUrl, deadline: &Deadline) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, deadline.left()?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn exchange(stream: &mut TcpStream, request: &[u8], deadline: &Deadline) -> io::Result<HttpResponse> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(deadline.left()?))?;
    stream.write_all(request)?;
    let mut bytes = Vec::with_capacity(1_024);
    let mut part = [0; 4_096];
    loop {
        stream.set_read_timeout(Some(deadline.left()?))?;
        let count = match stream.read(&mut part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        bytes.extend_from_slice(&part[..count]);
        if let Some(response) = read_response(&bytes, count == 0)? {
            return Ok(response);
        }
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if bytes.len() > RESPONSE_BYTES_MAX {
            return Err(malformed("the response is too long"));
        }
    }
}

/// The response, if it is complete. Without a length, the body ends with the connection.
fn read_response(mut bytes: &[u8], closed: bool) -> io::Result<Option<HttpResponse>> {
    for _ in 0..INTERIM_MAX {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Response::new(&mut headers);
        let parsed = head.parse(bytes).map_err(|_| malformed("the response is not HTTP"))?;
        let httparse::Status::Complete(head_bytes) = parsed else { return Ok(None) };
        bytes = &bytes[head_bytes..];
        let status = head.code.unwrap_or(0);
        if (100..200).contains(&status) {
            continue;
        }
        let header = |name: &str| {
            let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok().map(str::trim)
        };
        let body = if header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            joined_chunks(bytes)?
        } else if let Some(length) = header("content-length") {
            let length: usize =
                length.parse().map_err(|_| malformed("the response's length is no number"))?;
            bytes.get(..length).map(<[u8]>::to_vec)
        } else {
            closed.then(|| bytes.to_vec())
        };
        return Ok(body.map(|body| HttpResponse { status, body }));
    }
    Err(malformed("the server sends too many interim responses"))
}

/// The body of a chunked response, if it is complete.
fn joined_chunks(mut rest: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    loop {
        let parsed =
            httparse::parse_chunk_size(rest).map_err(|_| malformed("the response's chunks are malformed"))?;
        let httparse::Status::Complete((begin, size)) = parsed else { return Ok(None) };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let end = begin.saturating_add(size);
        if size == 0 {
            return Ok(Some(body));
        }
        let (Some(chunk), Some(after)) = (rest.get(begin..end), rest.get(end.saturating_add(2)..)) else {
            return Ok(None);
        };
        body.extend_from_slice(chunk);
        rest = after;
    }
}

fn malformed(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, closed: bool) -> Option<(u16, String)> {
        let response = read_response(text.as_bytes(), closed).unwrap()?;
        Some((response.status, String::from_utf8(response.body).unwrap()))
    }

    #[test]
    fn a_response_ends_by_length_chunks_or_connection() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
        ] {
            assert_eq!(whole(text, false), Some((200, "hello".to_owned())), "{text}");
            // The first line of the last chunk ends the body; the rest does not matter.
            for end in 0..text.len() - 4 {
                assert_eq!(whole(&text[..end], false), None, "{text} cut at {end}");
            }
        }
        let open = "HTTP/1.1 429 Too Many Requests\r\n\r\nhello";
        assert_eq!((whole(open, false), whole(open, true)), (None, Some((429, "hello".to_owned()))));
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(50_000);
        assert!(read_response(interim.as_bytes(), false).is_err(), "interim responses are bounded");
        assert!(read_response(b"220 ready for mail\r\n", false).is_err());
        assert!(read_response(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", false).is_err());
        assert!(
            read_response(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", false).is_err()
        );
    }
}
