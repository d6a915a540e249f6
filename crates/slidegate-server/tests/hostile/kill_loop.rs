//! A server on a SQLite file that is killed again and again while it admits.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::attack::{Attack, Plan};
use crate::client::request;
use crate::fuzzed_bodies::Random;
use crate::observe::{grouped, stop, until};
use crate::program::{file_of, fresh};
use crate::server_process::ServerProcess;
use crate::wire::status_of;

pub(crate) const ATTACK: Attack = Attack {
    name: "kill -9 on SQLite",
    holds: "the file opened again each time; no admission that was answered was lost, and all of them together \
            never exceeded the limit",
    carry_out: attack,
};

const CLIENTS: usize = 3;
const CHECK: &[u8] = br#"{"rule":"api","key":"alice"}"#;

fn attack(plan: &Plan) -> String {
    let (kills, limit) = (plan.size(5, 60), plan.size(400, 4_000));
    // Longer than a slow disk takes.
    let config = file_of("rules.yaml", format!("rules: {{ api: {{ limit: {limit}/1d }} }}\ndeadline: 10s\n"));
    let store = format!("sqlite:{}", fresh("store").join("state.db").display());
    let start = || ServerProcess::start(&["--config", &config, "--store", &store]);
    let mut random = Random::new(plan.seed);
    let mut admitted = 0;
    for kill in 0..kills {
        let server = start();
        let used = used(&server);
        assert!(used >= admitted, "kill {kill}: {admitted} units were admitted, the file has {used}");
        admitted += admit_until_killed(&server, random.below(2 * limit / kills));
    }
    let server = start();
    let found = used(&server);
    assert!(found >= admitted, "{admitted} units were admitted, the file has {found}");
    let mut client = server.connect();
    for _ in 0..limit {
        let answer = client.ask("POST", "/v1/check", str::from_utf8(CHECK).expect("text"));
        assert!(matches!(answer.status, 200 | 429), "{answer:?}");
        admitted += u64::from(answer.status == 200);
    }
    assert!(admitted <= limit as u64, "{admitted} units were admitted by a limit of {limit}");
    stop(server);
    format!("{kills} kills, {} admissions", grouped(admitted))
}

/// Several clients check until the server is killed, after so many answers. Returns the admissions that were answered.
fn admit_until_killed(server: &ServerProcess, answers_max: usize) -> u64 {
    let (admitted, answered) = (AtomicU64::new(0), AtomicU64::new(0));
    let bytes = request("POST", "/v1/check", &[("content-type", "application/json")], CHECK);
    let address = server.address;
    let ask = || -> io::Result<()> {
        let mut stream = TcpStream::connect(address)?;
        loop {
            let status = status_of(&mut stream, &bytes)?;
            admitted.fetch_add(u64::from(status == 200), Ordering::Relaxed);
            answered.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
        until("the server answers", || {
            answered.load(Ordering::Relaxed) >= answers_max as u64
                || clients.iter().any(thread::ScopedJoinHandle::is_finished)
        });
        let id = i32::try_from(server.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(id, Signal::KILL).expect("it runs");
    });
    admitted.into_inner()
}

/// Units of the key that the file has.
fn used(server: &ServerProcess) -> u64 {
    let answer = server.ask("GET", "/v1/keys/api/alice", "");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["limits"][0]["used"].as_u64().expect("a number")
}
