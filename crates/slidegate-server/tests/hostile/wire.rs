//! Answers as bytes, from servers that may be killed while they write: nothing here panics.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::client::TIMEOUT;

/// Status and length of the complete answer that the bytes begin with; `None` if it is cut or is none.
pub(crate) fn first_answer(bytes: &[u8]) -> Option<(u16, usize)> {
    let head_len = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = str::from_utf8(&bytes[..head_len]).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    let length = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    };
    let answer_len = head_len + head.lines().find_map(length).unwrap_or(0);
    (bytes.len() >= answer_len).then_some((status, answer_len))
}

/// Everything that the server answers until it closes the connection; our end sends no more. `None` if it does neither.
pub(crate) fn all_answers(address: SocketAddr, request: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a time limit");
    // The server may refuse a request before it has arrived.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answers = Vec::new();
    match stream.read_to_end(&mut answers) {
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => None,
        _ => Some(answers),
    }
}

/// The status of the answer to a request.
pub(crate) fn status_of(stream: &mut TcpStream, request: &[u8]) -> io::Result<u16> {
    stream.write_all(request)?;
    let (mut read, mut buffer) = (Vec::new(), [0; 4 << 10]);
    loop {
        if let Some((status, _)) = first_answer(&read) {
            return Ok(status);
        }
        match stream.read(&mut buffer)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => read.extend_from_slice(&buffer[..count]),
        }
    }
}
