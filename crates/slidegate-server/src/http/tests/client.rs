//! A client that shows the bytes on the wire. The tests of the program use it too.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than any answer takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// One connection, over TCP or TLS.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    read: Vec<u8>,
}

/// An answer as received.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The values of a header, joined if it is repeated.
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let values: Vec<_> =
            self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| &**value).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The name of the problem; asserts that it has a remedy.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type").as_deref(), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], self.status, "{self:?}");
        assert!(json["remedy"].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        self.problem_name()
    }

    /// The name of the problem.
    pub(crate) fn problem_name(&self) -> String {
        let json = self.json();
        for field in ["title", "detail"] {
            assert!(json[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {self:?}");
        }
        let kind = json["type"].as_str().unwrap_or_else(|| panic!("no problem: {self:?}"));
        kind.strip_prefix("urn:slidegate:problem:").unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.ask_with(method, path, &[("content-type", "application/json")], body.as_bytes())
    }

    pub(crate) fn ask_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> HttpAnswer {
        self.send(&request(method, path, headers, body));
        self.answer().expect("an answer")
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// The next answer; `None` at the end of the connection.
    pub(crate) fn answer(&mut self) -> Option<HttpAnswer> {
        let head_end = loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if !self.read_more() {
                assert!(self.read.is_empty(), "cut: {}", String::from_utf8_lossy(&self.read));
                return None;
            }
        };
        let head = String::from_utf8(self.read.drain(..head_end).collect()).expect("a head of text");
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").expect("a header");
            (name.to_ascii_lowercase(), value.to_owned())
        };
        let headers: Vec<_> = lines.map(header).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse().unwrap());
        while self.read.len() < length {
            assert!(self.read_more(), "the body is cut");
        }
        let body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        Some(HttpAnswer { status, headers, body })
    }

    /// Whether the server has closed the connection; waits for it.
    pub(crate) fn is_closed(&mut self) -> bool {
        !self.read_more()
    }

    /// Puts a byte back in front of the unread ones.
    pub(crate) fn put_back(&mut self, byte: u8) {
        self.read.insert(0, byte);
    }

    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.read.extend_from_slice(&buffer[..count]);
                true
            }
            // The process was suspended and resumed.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => panic!("the connection broke: {error}"),
        }
    }
}

/// A request as bytes.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    if !body.is_empty() {
        head.extend(["content-length: ", &body.len().to_string(), "\r\n"]);
    }
    [format!("{head}\r\n").as_bytes(), body].concat()
}
