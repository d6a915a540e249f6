//! An open-loop client: it sends requests on a schedule.
//!
//! Every request has a scheduled time, independent of earlier answers, and its latency counts from there. While all
//! connections wait for answers, due requests wait too, and that counts: no coordinated omission. One thread does
//! everything and never sleeps, because waking up takes longer than an answer.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use rustix::event::epoll;
use slidegate::time::{Clock, SystemClock};

use crate::request_template::RequestTemplate;

/// The timeout of an answer.
const ANSWER_MAX_US: u64 = 10_000_000;
/// The longest answer accepted.
const ANSWER_BYTES_MAX: usize = 16_384;

/// The schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// All at once: as fast as the server answers.
    AtOnce,
    /// A number per second, evenly spaced.
    PerSecond(u64),
}

impl Schedule {
    fn due_us(self, started_us: u64, request: u64) -> u64 {
        match self {
            Self::AtOnce => started_us,
            Self::PerSecond(rate) => started_us + request * 1_000_000 / rate.max(1),
        }
    }
}

/// The latencies of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScheduleRun {
    pub(crate) elapsed_us: u64,
    /// From the scheduled time of a request to its answer, ascending.
    pub(crate) latencies_us: Vec<u64>,
}

impl ScheduleRun {
    /// The latency at this permille of the requests.
    pub(crate) fn permille_us(&self, permille: usize) -> u64 {
        let place = (self.latencies_us.len() * permille).div_ceil(1_000).max(1) - 1;
        self.latencies_us.get(place).copied().unwrap_or(0)
    }
}

/// Sends `requests` requests, for one key after the other from `first` on, modulo `keys`.
pub(crate) fn ask(
    address: SocketAddr,
    template: &RequestTemplate,
    schedule: Schedule,
    connections: u16,
    (first, keys, requests): (u64, u64, u64),
) -> Result<ScheduleRun> {
    let clock = SystemClock::new();
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut lines =
        (0..connections).map(|_| ClientConnection::connect(address)).collect::<Result<Vec<_>>>()?;
    for (number, line) in lines.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, &line.stream, data, epoll::EventFlags::IN)?;
    }
    let mut idle: VecDeque<usize> = (0..lines.len()).collect();
    let mut events = Vec::with_capacity(lines.len());
    let mut latencies_us = Vec::with_capacity(usize::try_from(requests)?);
    let (started_us, mut sent) = (clock.now_us(), 0);
    let mut answered_us = started_us;
    while (latencies_us.len() as u64) < requests {
        let now_us = clock.now_us();
        while sent < requests && schedule.due_us(started_us, sent) <= now_us {
            let Some(number) = idle.pop_front() else { break };
            lines[number].send(template, (first + sent) % keys, schedule.due_us(started_us, sent))?;
            sent += 1;
        }
        events.clear();
        epoll::wait(
            &poll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&rustix::time::Timespec::default()),
        )?;
        for event in &events {
            let number = usize::try_from(event.data.u64())?;
            if lines[number].receive()? {
                answered_us = clock.now_us();
                latencies_us.push(answered_us.saturating_sub(lines[number].due_us));
                idle.push_back(number);
            }
        }
        let waiting = sent > latencies_us.len() as u64;
        ensure!(!waiting || now_us < answered_us + ANSWER_MAX_US, "no answer came");
    }
    latencies_us.sort_unstable();
    Ok(ScheduleRun { elapsed_us: answered_us - started_us, latencies_us })
}

/// A connection and its request in flight.
struct ClientConnection {
    stream: TcpStream,
    due_us: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl ClientConnection {
    fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("cannot reach {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, due_us: 0, request: Vec::new(), answer: Vec::new() })
    }

    fn send(&mut self, template: &RequestTemplate, key: u64, due_us: u64) -> Result<()> {
        self.due_us = due_us;
        self.answer.clear();
        template.write(key, &mut self.request);
        // An idle connection has room for one request.
        self.stream.write_all(&self.request).context("cannot send")
    }

    /// Whether the answer is complete.
    fn receive(&mut self) -> Result<bool> {
        let mut buffer = [0; 4_096];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(bytes) => self.answer.extend_from_slice(&buffer[..bytes]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).context("cannot receive"),
        }
        ensure!(self.answer.len() <= ANSWER_BYTES_MAX, "an answer without end");
        is_complete(&self.answer)
    }
}

/// Whether the bytes are a complete answer. An answer that is not an admission is an error: admissions are measured.
fn is_complete(answer: &[u8]) -> Result<bool> {
    let Some(head) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return Ok(false) };
    let text = String::from_utf8_lossy(&answer[..head]);
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let body = &answer[head + 4..];
    if body.len() < length.context("an answer without a length")? {
        return Ok(false);
    }
    let admitted = text.starts_with("HTTP/1.1 200 ") && body.starts_with(br#"{"allowed":true,"#);
    ensure!(admitted, "not an admission: {text}\n{}", String::from_utf8_lossy(body));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn an_answer_is_complete_when_its_body_is() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-length: 19\r\n\r\n{\"allowed\":true,...";
        assert!(is_complete(answer).unwrap());
        for end in 0..answer.len() - 1 {
            assert!(!is_complete(&answer[..end]).unwrap(), "{end}");
        }
        for bad in [
            &b"HTTP/1.1 429 Too Many\r\ncontent-length: 16\r\n\r\n{\"allowed\":true,"[..],
            b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":false}",
            b"HTTP/1.1 200 OK\r\n\r\n",
        ] {
            assert!(is_complete(bad).is_err());
        }
    }

    #[test]
    fn permilles_count_requests() {
        let answered = ScheduleRun { elapsed_us: 0, latencies_us: (1..=1_000).collect() };
        assert_eq!(
            [500, 990, 999, 1_000].map(|permille| answered.permille_us(permille)),
            [500, 990, 999, 1_000]
        );
    }

    /// The server delays the first answer beyond the schedule: the latencies of all requests must include the delay.
    #[test]
    fn a_stall_counts_in_every_request_that_was_due_meanwhile() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let clock = SystemClock::new();
            let mut buffer = [0; 4_096];
            for request in 0..20 {
                assert!(stream.read(&mut buffer).unwrap() > 0);
                let until_us = clock.now_us() + 100_000;
                while request == 0 && clock.now_us() < until_us {
                    std::thread::yield_now();
                }
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":true,}")
                    .unwrap();
            }
        });
        let template = RequestTemplate::post(1, "/", crate::request_template::KEY);
        let answered = ask(address, &template, Schedule::PerSecond(1_000), 1, (0, 10, 20)).unwrap();
        server.join().unwrap();
        // All were due within the first 20 ms, and the first answer came after 100 ms.
        assert!(answered.latencies_us[0] >= 79_000, "{answered:?}");
        assert!(answered.permille_us(1_000) >= 100_000, "{answered:?}");
    }
}
