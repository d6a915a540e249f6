//! A store that comes and goes: nothing is left over.

use std::fs;
use std::thread;
use std::time::Duration;

use slidegate::testing::Rng;
use slidegate::time::{Clock, SystemClock};

use crate::faults::Target;
use crate::matrix::configuration;
use crate::observe::{MIB, check, stop, until};
use crate::options::Plan;
use crate::proxy::Mode;
use crate::server_process::ServerProcess;
use crate::trial::Text;

pub(crate) const TRIAL: Text = trial;

/// A limit whose local share a minute of requests does not reach.
const RATE: &str = "1000000000/1d";
/// Memory that the allocator may keep.
const GROWTH_MAX: u64 = 8 * MIB;

fn trial(plan: &Plan) -> String {
    let (mut target, mut rng) = (Target::start(), Rng::new(plan.seed));
    let server = ServerProcess::start(&["--config", &configuration(RATE), "--store", &target.proxy.url()]);
    until("the store is used", || server.ask("GET", "/readyz", "").status == 200);
    // Warm: the first outage makes the local limits.
    flap(&server, &mut target, &mut rng, 1);
    let (files, tasks, bytes) = (open_files(&server), threads(&server), server.resident_bytes());
    let clients = connected_clients(&target);
    let seconds = plan.size(3, 60);
    let (flaps, requests) = flap(&server, &mut target, &mut rng, seconds);
    until("connections are closed", || open_files(&server) <= files && connected_clients(&target) <= clients);
    assert_eq!(threads(&server), tasks, "threads");
    let grown = server.resident_bytes().saturating_sub(bytes);
    assert!(grown <= GROWTH_MAX, "{grown} bytes more");
    let log = stop(server);
    let lines = log.lines().count();
    assert!(lines < 20 + 4 * usize::try_from(seconds).unwrap(), "{lines} lines: {log}");
    format!(
        "{flaps} outages in {seconds} s and {requests} requests left no connection, descriptor or thread, and {} KiB of memory",
        grown >> 10
    )
}

/// Opens and closes the port for some seconds under requests, and leaves the store reachable and in use. Returns the
/// outages and the requests.
fn flap(server: &ServerProcess, target: &mut Target, rng: &mut Rng, seconds: u64) -> (u64, u64) {
    let clock = SystemClock::new();
    let until_us = clock.now_us() + seconds * 1_000_000;
    let asking = || {
        let (mut client, mut requests) = (server.connect(), 0);
        while clock.now_us() < until_us {
            for rule in ["strict", "open", "share"] {
                let status = check(&mut client, rule, "alice").status;
                assert!([200, 503].contains(&status), "{status}");
                requests += 1;
            }
        }
        requests
    };
    let (mut flaps, mut requests) = (0, 0);
    thread::scope(|scope| {
        let callers = [scope.spawn(asking), scope.spawn(asking)];
        while clock.now_us() < until_us {
            target.proxy.set(Mode::Refuse);
            thread::park_timeout(Duration::from_millis(rng.below(300)));
            target.proxy.set(Mode::Forward);
            thread::park_timeout(Duration::from_millis(rng.below(600)));
            flaps += 1;
        }
        requests = callers.into_iter().map(|caller| caller.join().expect("its assertions hold")).sum();
    });
    until("the store is used again", || {
        let answer = check(&mut server.connect(), "strict", "alice");
        answer.status == 200 && answer.json()["degraded"] == false
    });
    (flaps, requests)
}

fn open_files(server: &ServerProcess) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.id())).expect("Linux").count()
}

fn threads(server: &ServerProcess) -> usize {
    fs::read_dir(format!("/proc/{}/task", server.id())).expect("Linux").count()
}

fn connected_clients(target: &Target) -> u64 {
    let info: String = redis::from_redis_value(target.redis.command(&["INFO", "clients"])).expect("text");
    let clients = info.lines().find_map(|line| line.strip_prefix("connected_clients:")?.trim().parse().ok());
    clients.expect("a number")
}
