//! More connections than the process may have open files.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;

use crate::attack::{Attack, Plan};
use crate::client::{TIMEOUT, request};
use crate::observe::{grouped, stop, until};
use crate::program::{command_by, file_of};
use crate::server_process::ServerProcess;
use crate::wire::status_of;

pub(crate) const ATTACK: Attack = Attack {
    name: "file descriptors",
    holds: "open connections went on; further ones got 503, were closed, or waited until others left; then all \
            were served again",
    carry_out: attack,
};

const CONFIG: &str = "rules: { api: { limit: 1000000/1h } }";
/// Fewer than refused connections alone take, so that accepting fails; and enough for 64 connections.
const FILES_MAX: [usize; 2] = [64, 192];

fn attack(plan: &Plan) -> String {
    let (rounds, each) = (plan.size(2, 10), plan.size(300, 2_000_u64));
    for files_max in FILES_MAX {
        crowd(files_max, rounds, each);
    }
    format!("{} connections at `ulimit -n` of {FILES_MAX:?}", grouped(2 * rounds * each))
}

fn crowd(files_max: usize, rounds: u64, each: u64) {
    let config = file_of("rules.yaml", CONFIG);
    let script = format!("ulimit -n {files_max} && exec \"$0\" \"$@\"");
    let arguments = ["serve", "--http", "127.0.0.1:0", "--config", &config];
    let server = ServerProcess::start_by(&mut command_by(&["sh", "-c", &script], &arguments));
    for _ in 0..rounds {
        let mut open = served(&server);
        let connect = |_| TcpStream::connect(server.address).expect("the system accepts");
        let mut crowd: Vec<TcpStream> = (0..each).map(connect).collect();
        for mut stream in &crowd {
            // It may be closed already.
            let _ = stream.write_all(&request("GET", "/v1/rules", &[], b""));
            stream.set_nonblocking(true).expect("a socket");
        }
        assert_eq!(check(&mut open).expect("an open connection goes on"), 200);
        // Those that have an answer leave.
        let mut refused = 0_u64;
        until("all are answered or closed", || {
            crowd.retain(|stream| {
                let end = end_of(stream);
                refused += u64::from(end == Some(End::Refused));
                end.is_none()
            });
            crowd.is_empty()
        });
        assert!(refused > 0, "there are descriptors for {each} connections");
        assert_eq!(check(&mut open).expect("an open connection goes on"), 200);
    }
    drop(served(&server));
    stop(server);
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Served,
    Refused,
}

/// What became of a connection; `None` while it waits.
fn end_of(stream: &TcpStream) -> Option<End> {
    let mut line = [0; 12];
    match stream.peek(&mut line) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Ok(12) if line == *b"HTTP/1.1 200" => Some(End::Served),
        // A 503, or closed without an answer.
        _ => Some(End::Refused),
    }
}

/// A connection that is served; the server may take a moment to notice that others have left.
fn served(server: &ServerProcess) -> TcpStream {
    let connect = || TcpStream::connect(server.address).expect("the system accepts");
    let mut stream = connect();
    until("a connection is served", || {
        let is_served = check(&mut stream).is_ok_and(|status| status == 200);
        if !is_served {
            stream = connect();
        }
        is_served
    });
    stream
}

/// The status of a check; an error if the connection is closed.
fn check(stream: &mut TcpStream) -> io::Result<u16> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let body = br#"{"rule":"api","key":"alice"}"#;
    status_of(stream, &request("POST", "/v1/check", &[("content-type", "application/json")], body))
}
