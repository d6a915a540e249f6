//! Peers that are silent, send a head byte by byte, stop in the middle of a body, or never read their answers.

use std::io::Write;
use std::net::TcpStream;

use crate::attack::{Attack, Plan};
use crate::client::{Client, request};
use crate::observe::{MIB, check, grouped, open_files, pause, peak_bytes, stop, until};
use crate::program::file_of;
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "slow peers",
    holds: "checks were answered meanwhile; memory stayed within `bounds.buffer_bytes`, 32 KiB per connection and \
            16 MiB, and most of it was given back; every connection was closed by `request_time` or `idle_time`",
    carry_out: attack,
};

const CONFIG: &str = "\
rules: { api: { limit: 1000000/1h } }
bounds: { buffer_bytes: 4MiB, request_time: 4s, idle_time: 4s }
";
const BUFFER_BYTES: u64 = 4 * MIB;
const CONNECTION_BYTES: u64 = 32 << 10;
const MARGIN_BYTES: u64 = 16 * MIB;
const BODY_BYTES: usize = 64_000;
/// Enough answers to fill the buffers of both sockets.
const PIPELINED: usize = 200;
const FILES_REMEDY: &str = "the system refuses connections; raise `ulimit -n`";

fn attack(plan: &Plan) -> String {
    let (rounds, each) = (plan.size(1, 3), plan.size(400, 4_000));
    let server = ServerProcess::start(&["--config", &file_of("rules.yaml", CONFIG)]);
    assert_eq!(server.ask("GET", "/v1/rules", "").status, 200);
    let before = server.resident_bytes();
    let bound = BUFFER_BYTES + CONNECTION_BYTES * each + MARGIN_BYTES;
    let mut grown = 0;
    for round in 0..rounds {
        besiege(&server, each);
        // What is kept after one round must serve the next.
        grown = peak_bytes(&server) - before;
        assert!(grown < bound, "{} MiB more for {each} slow peers, round {round}", grown / MIB);
    }
    until("most of the memory is given back", || {
        server.resident_bytes().saturating_sub(before) <= MARGIN_BYTES + grown / 4
    });
    let after = server.resident_bytes().saturating_sub(before);
    stop(server);
    let (total, grown, after) = (grouped(rounds * each), grown / MIB, after / MIB);
    format!("{total} connections, {} at a time; {grown} MiB more, {after} MiB afterwards", grouped(each))
}

/// Slow peers, until the server has closed all of them.
fn besiege(server: &ServerProcess, count: u64) {
    let files = open_files(server);
    let mut ordinary = server.connect();
    let (mut peers, mut slow): (Vec<TcpStream>, Vec<TcpStream>) = (Vec::new(), Vec::new());
    for number in 0..count {
        let mut stream = TcpStream::connect(server.address).expect(FILES_REMEDY);
        // Nobody waits for a server that does not read.
        stream.set_nonblocking(true).expect("a socket");
        match number % 1_000 {
            0..50 => {}
            50..100 => slow.push(stream.try_clone().expect(FILES_REMEDY)),
            // A few, because the server makes their answers until the buffers are full.
            100 => drop(stream.write_all(&request("GET", "/openapi.json", &[], b"").repeat(PIPELINED))),
            _ => drop(stream.write_all(&half_body())),
        }
        peers.push(stream);
        if number % 500 == 0 {
            serve_meanwhile(server, &mut ordinary);
        }
    }
    // The slow heads arrive byte by byte until the server gives up.
    for byte in b"POST /v1/check HTTP/1.1\r\nx-slow: 0123456789" {
        for stream in &mut slow {
            // It may be closed already.
            let _ = stream.write_all(&[*byte]);
        }
        serve_meanwhile(server, &mut ordinary);
        pause();
    }
    until("the connections of slow peers are closed", || {
        serve_meanwhile(server, &mut ordinary);
        open_files(server) <= files + 2
    });
}

/// All but the last bytes of a valid request.
fn half_body() -> Vec<u8> {
    let body = " ".repeat(BODY_BYTES);
    let mut bytes = request("POST", "/v1/peek", &[("content-type", "application/json")], body.as_bytes());
    bytes.truncate(bytes.len() - 1_000);
    bytes
}

/// An ordinary check; on a new connection, and on one that stays open.
fn serve_meanwhile(server: &ServerProcess, open: &mut Client) {
    assert_eq!(check(open, "api", "alice").status, 200);
    assert_eq!(check(&mut server.connect(), "api", "alice").status, 200);
}
