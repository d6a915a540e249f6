//! Faults of a real Redis under a running server.

use std::time::Duration;

use redis::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::attack::{Attack, Plan};
use crate::observe::{check, stop, timed, until};
use crate::program::file_of;
use crate::server::{RedisServer, command};
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "store faults",
    holds: "each request was answered within seconds, by its outage policy; /readyz and the log named the cause; \
            the end of the fault was noticed; the limit was never exceeded",
    carry_out: attack,
};

const LIMIT: u64 = 300;
/// The deadline of 100 ms, and much more than a stalled machine needs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const PASSWORD: &str = "correct-horse-battery";

struct Fault {
    /// Its causes as /readyz and the log name them.
    kinds: &'static [&'static str],
    /// Whether other keys go on.
    spares_others: bool,
    begin: fn(&mut Target),
    end: fn(&mut Target),
}

/// The Redis that has faults.
struct Target {
    redis: RedisServer,
    /// Older than the fault.
    connection: Connection,
    id: Pid,
}

impl Target {
    /// After a restart connection and process are others.
    fn of(redis: RedisServer) -> Self {
        let mut connection = redis.connection();
        let info = command(&mut connection, &["INFO", "server"]);
        let info: String = redis::from_redis_value(info).expect("text");
        let id = info.lines().find_map(|line| line.strip_prefix("process_id:")?.trim().parse().ok());
        Self { redis, connection, id: id.and_then(Pid::from_raw).expect("a process id") }
    }

    fn send(&mut self, words: &[&str]) {
        command(&mut self.connection, words);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.id, signal).expect("it runs");
    }
}

const FAULTS: &[Fault] = &[
    Fault {
        kinds: &["unavailable", "ambiguous"],
        spares_others: false,
        begin: |target| target.signal(Signal::STOP),
        // It then executes what it was sent.
        end: |target| target.signal(Signal::CONT),
    },
    Fault {
        kinds: &["unavailable", "ambiguous"],
        spares_others: false,
        begin: |target| target.redis.kill(),
        end: |target| target.redis.restart(),
    },
    Fault {
        kinds: &["out-of-memory"],
        spares_others: false,
        begin: |target| target.send(&["CONFIG", "SET", "maxmemory", "1"]),
        end: |target| target.send(&["CONFIG", "SET", "maxmemory", "0"]),
    },
    Fault {
        kinds: &["read-only"],
        spares_others: false,
        begin: |target| target.send(&["REPLICAOF", "127.0.0.1", "1"]),
        end: |target| target.send(&["REPLICAOF", "NO", "ONE"]),
    },
    Fault {
        kinds: &["foreign-value"],
        spares_others: true,
        begin: |target| {
            target.send(&["RPUSH", "sg:{mallory}:strict", "x"]);
            target.send(&["RPUSH", "sg:{mallory}:open", "x"]);
        },
        end: |target| target.send(&["DEL", "sg:{mallory}:strict", "sg:{mallory}:open"]),
    },
    Fault {
        kinds: &["forbidden", "unavailable"],
        spares_others: false,
        begin: |target| {
            target.send(&["CONFIG", "SET", "requirepass", PASSWORD]);
            target.send(&["CLIENT", "KILL", "TYPE", "normal"]);
        },
        end: |target| target.send(&["CONFIG", "SET", "requirepass", ""]),
    },
];

fn attack(plan: &Plan) -> String {
    let (rounds, requests) = (plan.size(1, 5), plan.size(3, 20));
    // On disk at once, so that counts survive the end of the process.
    let mut redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let rules =
        format!("strict: {{ limit: {LIMIT}/1d }}, open: {{ limit: {LIMIT}/1d, on_store_error: allow }}");
    let config = file_of("rules.yaml", format!("rules: {{ {rules} }}\ndeadline: 100ms\n"));
    let server = ServerProcess::start(&["--config", &config, "--store", &redis.url()]);
    let mut admitted = 0;
    for fault in FAULTS.iter().cycle().take(rounds * FAULTS.len()) {
        let mut target = Target::of(redis);
        admitted += served(&server);
        (fault.begin)(&mut target);
        endure(&server, fault, requests);
        if fault.spares_others {
            admitted += served(&server);
        }
        (fault.end)(&mut target);
        until("/readyz notices the end of a fault", || server.ask("GET", "/readyz", "").status == 200);
        redis = target.redis;
    }
    admitted += served(&server);
    until("the limit is used", || {
        let status = check(&mut server.connect(), "strict", "alice").status;
        admitted += u64::from(status == 200);
        status == 429
    });
    // A charge whose answer was lost may have been made.
    assert!(admitted <= LIMIT, "{admitted} units were admitted by a limit of {LIMIT}");
    let log = stop(server);
    for fault in FAULTS {
        let is_named = |kind: &&str| log.contains(&format!("\"kind\":\"{kind}\""));
        assert!(fault.kinds.iter().any(is_named), "no line names {:?}: {log}", fault.kinds);
    }
    let lines = log.matches("the store fails").count();
    assert!(lines <= 3 * rounds * FAULTS.len(), "{lines} lines: {log}");
    assert!(!log.contains("mallory") && !log.contains(PASSWORD), "{log}");
    wrong_password(&redis);
    format!("{} faults, {} requests meanwhile", rounds * FAULTS.len(), 2 * requests * rounds * FAULTS.len())
}

/// Requests during a fault.
fn endure(server: &ServerProcess, fault: &Fault, requests: usize) {
    let key = if fault.spares_others { "mallory" } else { "alice" };
    for number in 0..2 * requests {
        let rule = ["strict", "open"][number % 2];
        let (answer, time) = timed(|| check(&mut server.connect(), rule, key));
        assert!(time < ANSWER_TIME_MAX, "{:?}: {time:?}", fault.kinds);
        match rule {
            "strict" => assert_eq!(answer.status, 503, "{:?}: {answer:?}", fault.kinds),
            _ => assert_eq!((answer.status, answer.json()["degraded"] == true), (200, true), "{answer:?}"),
        }
    }
    // A busy machine may also exceed the deadline of this question.
    until("/readyz names the cause", || {
        let ready = server.ask("GET", "/readyz", "");
        let is_named = |kind: &&str| ready.body == format!("not ready: store ({kind})\n");
        (ready.status == 200) == fault.spares_others
            && (fault.spares_others || fault.kinds.iter().any(is_named))
    });
}

/// Asks until a check is admitted; a busy machine may exceed the deadline. Returns the admission.
fn served(server: &ServerProcess) -> u64 {
    until("a check is admitted", || check(&mut server.connect(), "strict", "alice").status == 200);
    1
}

fn wrong_password(redis: &RedisServer) {
    redis.command(&["CONFIG", "SET", "requirepass", PASSWORD]);
    let url = format!("redis://:wrong-password@127.0.0.1:{}", redis.port());
    let server = ServerProcess::start(&["--store", &url]);
    until("/readyz names the login", || {
        server.ask("GET", "/readyz", "").body == "not ready: store (forbidden)\n"
    });
    let answer = check(&mut server.connect(), "default", "alice");
    assert_eq!((answer.status, &answer.json()["cause"]), (503, &json!("forbidden")), "{answer:?}");
    assert!(!answer.body.contains("wrong-password"), "{answer:?}");
    let log = stop(server);
    assert!(log.contains("password") && !log.contains("wrong-password"), "{log}");
}
