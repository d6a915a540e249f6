//! Whatever fails, no window holds more than the limit and what degraded answers are stated to allow.
//!
//! Two servers share a Redis, each behind a proxy of its own, and faults of a seeded plan hit the store or either path.
//! All callers record when an admission arrived. It was decided at most as long before as its request took, so all
//! admissions that arrived within a window that is shorter by the longest request lie in one window of the store.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use slidegate::testing::{Auditor, Rng};
use slidegate::time::{Clock, SystemClock};

use crate::observe::{check, until};
use crate::options::Plan;
use crate::program::file_of;
use crate::proxy::{Mode, Proxy};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;
use crate::trial::Text;

pub(crate) const TRIAL: Text = trial;

const LIMIT: u64 = 100;
const WINDOW_US: u64 = 2_000_000;
const SERVERS: usize = 2;
/// A quarter of the limit, in each server.
const SHARE: u64 = 25;

const RULES: &str = "
rules:
  strict: { limit: 100/2s, on_store_error: deny }
  open: { limit: 100/2s, on_store_error: allow }
  share: { limit: 100/2s, on_store_error: { local: 0.25 } }
deadline: 50ms
";

/// An admission by a rule, as its caller saw it.
struct Admitted {
    arrived_us: u64,
    took_us: u64,
    degraded: bool,
}

fn trial(plan: &Plan) -> String {
    // On disk at once, so that no fault of this trial loses what was admitted.
    let mut redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let config = file_of("rules.yaml", RULES);
    let mut proxies = [Proxy::start(redis.port()), Proxy::start(redis.port())];
    let servers =
        proxies.each_ref().map(|proxy| ServerProcess::start(&["--config", &config, "--store", &proxy.url()]));
    for server in &servers {
        until("the store is used", || server.ask("GET", "/readyz", "").status == 200);
    }
    let (clock, mut rng) = (SystemClock::new(), Rng::new(plan.seed));
    let end_us = clock.now_us() + plan.size(6, 90) * 1_000_000;
    let faults = Mutex::new(0_u64);
    let mut admitted = Vec::new();
    thread::scope(|scope| {
        let callers: Vec<_> = (0..2 * SERVERS)
            .map(|caller| {
                let (server, clock) = (&servers[caller % SERVERS], &clock);
                scope.spawn(move || ask_until(server, clock, end_us))
            })
            .collect();
        while clock.now_us() < end_us {
            fault(&mut redis, &mut proxies, &mut rng);
            *faults.lock().unwrap() += 1;
            thread::park_timeout(Duration::from_millis(rng.below(400)));
        }
        for caller in callers {
            admitted.push(caller.join().expect("its assertions hold"));
        }
    });
    let mut most = Vec::new();
    for (index, rule) in ["strict", "open", "share"].into_iter().enumerate() {
        let mut of_rule: Vec<&Admitted> = admitted.iter().flat_map(|by_rule| &by_rule[index]).collect();
        of_rule.sort_by_key(|admission| admission.arrived_us);
        let by_store = most_in_window(of_rule.iter().filter(|admission| !admission.degraded).copied());
        assert!(by_store <= LIMIT, "{rule}: the store admitted {by_store} in a window of {LIMIT}");
        let all = most_in_window(of_rule.iter().copied());
        let degraded = of_rule.iter().filter(|admission| admission.degraded).count();
        match rule {
            "strict" => assert_eq!((degraded, all), (0, by_store)),
            "share" => {
                let bound = LIMIT + SHARE * SERVERS as u64;
                assert!(all <= bound, "{all} in a window, stated are {bound}");
            }
            _ => assert!(degraded > 0, "no fault showed"),
        }
        most.push(format!("`{rule}` {all} ({degraded} degraded)"));
    }
    let faults = faults.into_inner().unwrap();
    format!(
        "limit {LIMIT}, {SERVERS} servers, {faults} faults: most in any window {}; by the store alone never above {LIMIT}",
        most.join(", ")
    )
}

/// One fault of a random kind, and its end.
fn fault(redis: &mut RedisServer, proxies: &mut [Proxy; SERVERS], rng: &mut Rng) {
    let lasts = Duration::from_millis(50 + rng.below(900));
    let path = usize::try_from(rng.below(SERVERS as u64)).expect("few");
    match rng.below(7) {
        0 => {
            redis.kill();
            thread::park_timeout(lasts);
            redis.restart();
        }
        1 => {
            let id = redis.process();
            signal(id, Signal::STOP);
            thread::park_timeout(lasts);
            signal(id, Signal::CONT);
        }
        2 => {
            redis.command(&["REPLICAOF", "127.0.0.1", "1"]);
            thread::park_timeout(lasts);
            redis.command(&["REPLICAOF", "NO", "ONE"]);
        }
        3 => {
            proxies[path].cut();
        }
        kind => {
            let mode = match kind {
                4 => Mode::BlackHole,
                5 => Mode::Delay(Duration::from_millis(120)),
                _ => Mode::Refuse,
            };
            proxies[path].set(mode);
            thread::park_timeout(lasts);
            proxies[path].set(Mode::Forward);
        }
    }
}

fn signal(id: u32, signal: Signal) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(id, signal).expect("it runs");
}

/// The admissions of every rule.
fn ask_until(server: &ServerProcess, clock: &SystemClock, end_us: u64) -> [Vec<Admitted>; 3] {
    let mut admitted = [const { Vec::new() }; 3];
    let mut client = server.connect();
    while clock.now_us() < end_us {
        for (admitted, rule) in admitted.iter_mut().zip(["strict", "open", "share"]) {
            let sent_us = clock.now_us();
            let answer = check(&mut client, rule, "alice");
            let arrived_us = clock.now_us();
            match answer.status {
                200 => admitted.push(Admitted {
                    arrived_us,
                    took_us: arrived_us - sent_us,
                    degraded: answer.json()["degraded"] == true,
                }),
                429 => {}
                503 => assert_eq!(rule, "strict", "{answer:?}"),
                _ => panic!("{answer:?}"),
            }
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    admitted
}

/// The most admissions of any window that is shorter by the longest request.
fn most_in_window<'a>(admitted: impl Iterator<Item = &'a Admitted> + Clone) -> u64 {
    let longest_us = admitted.clone().map(|admission| admission.took_us).max().unwrap_or(0);
    let window_us = WINDOW_US.checked_sub(longest_us).filter(|window_us| *window_us > WINDOW_US / 2);
    let mut auditor = Auditor::new(LIMIT, window_us.expect("no request takes half of a window"));
    for admission in admitted {
        auditor.saw(admission.arrived_us, 1, true);
    }
    auditor.findings().most_in_window
}
