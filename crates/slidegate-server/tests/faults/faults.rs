//! The faults, and how they begin and end.

use std::time::Duration;

use redis::Connection;
use rustix::process::{Pid, Signal, kill_process};

use crate::observe::until;
use crate::proxy::{Mode, Proxy};
use crate::server::{RedisServer, command};

pub(crate) const PASSWORD: &str = "correct-horse-battery";
/// Keys that a slowly starting Redis loads, and how long it takes for each.
const LOADED_KEYS: u64 = 4_000;
const LOAD_US: &str = "5000";

/// A fault of the store.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// Its causes, as answers, `/readyz` and the log name them.
    pub(crate) causes: &'static [&'static str],
    /// Whether the circuit breaker opens. If not, the store answers every request, by an error.
    pub(crate) opens_breaker: bool,
    /// Whether other keys go on.
    pub(crate) spares_others: bool,
    /// Whether script calls can arrive at the store.
    pub(crate) is_reachable: bool,
    pub(crate) begin: fn(&mut Target),
    pub(crate) end: fn(&mut Target),
}

/// The Redis that has faults, and the proxy before it.
pub(crate) struct Target {
    pub(crate) redis: RedisServer,
    pub(crate) proxy: Proxy,
    /// Older than the fault.
    connection: Connection,
    restarting: Option<std::thread::JoinHandle<RedisServer>>,
}

impl Target {
    pub(crate) fn start() -> Self {
        let args = ["--key-load-delay", LOAD_US, "--loading-process-events-interval-bytes", "1024"];
        let redis = RedisServer::start_with(&args);
        let proxy = Proxy::start(redis.port());
        let connection = redis.connection();
        Self { redis, proxy, connection, restarting: None }
    }

    fn send(&mut self, words: &[&str]) {
        command(&mut self.connection, words);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.redis.process()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), signal).expect("it runs");
    }
}

const OUTAGE: Fault = Fault {
    name: "",
    causes: &["unavailable", "ambiguous"],
    opens_breaker: true,
    spares_others: false,
    is_reachable: true,
    begin: |_| {},
    end: |_| {},
};

pub(crate) static FAULTS: [Fault; 11] = [
    Fault {
        name: "stopped",
        begin: |target| target.signal(Signal::STOP),
        // It then executes what it was sent.
        end: |target| target.signal(Signal::CONT),
        ..OUTAGE
    },
    Fault {
        name: "killed",
        is_reachable: false,
        begin: |target| target.redis.kill(),
        end: |target| target.redis.restart(),
        ..OUTAGE
    },
    Fault {
        name: "port closed",
        is_reachable: false,
        begin: |target| target.proxy.set(Mode::Refuse),
        end: |target| target.proxy.set(Mode::Forward),
        ..OUTAGE
    },
    Fault {
        name: "black hole",
        begin: |target| target.proxy.set(Mode::BlackHole),
        end: |target| target.proxy.set(Mode::Forward),
        ..OUTAGE
    },
    Fault {
        name: "replies 200 ms late",
        begin: |target| target.proxy.set(Mode::Delay(Duration::from_millis(200))),
        end: |target| target.proxy.set(Mode::Forward),
        ..OUTAGE
    },
    Fault {
        name: "spoiled replies",
        begin: |target| target.proxy.set(Mode::Spoil),
        end: |target| target.proxy.set(Mode::Forward),
        ..OUTAGE
    },
    Fault {
        name: "loading its data",
        begin: |target| {
            let fill =
                format!("for i = 1, {LOADED_KEYS} do redis.call('SET', 'loaded:' .. i, ('x'):rep(100)) end");
            target.send(&["EVAL", &fill, "0"]);
            target.send(&["SAVE"]);
            restart_slowly(target);
        },
        end: |target| {
            target.connection = reconnected(target);
            target.send(&["CONFIG", "SET", "key-load-delay", "0"]);
            target.redis = target.restarting.take().expect("it restarts").join().expect("it has loaded");
        },
        ..OUTAGE
    },
    Fault {
        name: "read-only replica",
        causes: &["read-only"],
        begin: |target| target.send(&["REPLICAOF", "127.0.0.1", "1"]),
        end: |target| target.send(&["REPLICAOF", "NO", "ONE"]),
        ..OUTAGE
    },
    Fault {
        name: "out of memory",
        causes: &["out-of-memory"],
        opens_breaker: false,
        begin: |target| target.send(&["CONFIG", "SET", "maxmemory", "1"]),
        end: |target| target.send(&["CONFIG", "SET", "maxmemory", "0"]),
        ..OUTAGE
    },
    Fault {
        name: "foreign value",
        causes: &["foreign-value"],
        opens_breaker: false,
        spares_others: true,
        begin: |target| {
            for rule in ["strict", "open", "share"] {
                target.send(&["DEL", &format!("sg:{{alice}}:{rule}")]);
                target.send(&["RPUSH", &format!("sg:{{alice}}:{rule}"), "x"]);
            }
        },
        end: |target| {
            for rule in ["strict", "open", "share"] {
                target.send(&["DEL", &format!("sg:{{alice}}:{rule}")]);
            }
        },
        ..OUTAGE
    },
    Fault {
        name: "wrong password",
        causes: &["forbidden", "unavailable"],
        opens_breaker: false,
        begin: |target| {
            target.send(&["CONFIG", "SET", "requirepass", PASSWORD]);
            target.send(&["CLIENT", "KILL", "TYPE", "normal"]);
        },
        end: |target| target.send(&["CONFIG", "SET", "requirepass", ""]),
        ..OUTAGE
    },
];

/// Kills Redis and starts it again with its data on disk, which it reads slowly.
fn restart_slowly(target: &mut Target) {
    let redis = std::mem::replace(&mut target.redis, RedisServer::start());
    let port = redis.port();
    target.restarting = Some(std::thread::spawn(move || {
        let mut redis = redis;
        redis.restart();
        redis
    }));
    until("Redis loads its data", || {
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("a URL");
        let pinged = client
            .get_connection()
            .and_then(|mut connection| redis::cmd("PING").query::<()>(&mut connection));
        pinged.is_err_and(|error| error.code() == Some("LOADING") || error.to_string().contains("LOADING"))
    });
}

/// A connection to the Redis that loads; `CONFIG` is answered meanwhile.
fn reconnected(target: &Target) -> Connection {
    let port = target.proxy.target_port();
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).expect("a URL");
    client.get_connection().expect("it accepts")
}
