//! Nobody reads the log, while signals, requests and files ask for reloads without end.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::attack::{Attack, Plan};
use crate::client::{Client, request};
use crate::observe::{check, grouped, stop, timed};
use crate::program::file_of;
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "stalled log, reload storm",
    holds: "/livez and /v1/check were answered within seconds, every caller got the result of a reload, \
            log lines without room were dropped and counted, and SIGTERM ended the server",
    carry_out: attack,
};

const GOOD: &str = "rules: { api: { limit: 1000000/1h } }";
/// A hundred times what an idle machine needs.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
const CALLERS: usize = 100;

fn attack(plan: &Plan) -> String {
    let (rounds, signals) = (plan.size(1, 10), plan.size(500, 5_000));
    let config = file_of("rules.yaml", GOOD);
    let server = ServerProcess::start(&["--config", &config]);
    // The report of this file is longer than a pipe holds.
    let bad = (0..1_000).fold("rules:\n".to_owned(), |mut text, number| {
        writeln!(text, "  rule-{number}: {{ limit: bananas }}").expect("a text grows");
        text
    });
    for _ in 0..rounds {
        for (text, status) in [(bad.as_str(), 422), (GOOD, 200)] {
            fs::write(&config, text).expect("a file");
            hang_up(&server, signals);
            let mut callers: Vec<Client> = (0..CALLERS).map(|_| server.connect()).collect();
            for caller in &mut callers {
                caller.send(&request("POST", "/v1/admin/reload", &[], b""));
            }
            serve_meanwhile(&server);
            for caller in &mut callers {
                let answer = caller.answer().expect("every caller gets a result");
                assert_eq!(answer.status, status);
            }
        }
    }
    serve_meanwhile(&server);
    let dropped = dropped_lines(&server);
    assert!(dropped > 0 || !plan.full, "the log was not longer than the queue: this tests too little");
    stop(server);
    let [signals, calls] = [2 * rounds * signals, 2 * rounds * CALLERS].map(|count| grouped(count as u64));
    format!("{signals} signals and {calls} calls; {} lines dropped", grouped(dropped))
}

fn serve_meanwhile(server: &ServerProcess) {
    let (alive, alive_time) = timed(|| server.ask("GET", "/livez", "").status);
    let (checked, check_time) = timed(|| check(&mut server.connect(), "api", "alice").status);
    assert_eq!((alive, checked), (200, 200));
    assert!(alive_time.max(check_time) < ANSWER_TIME_MAX, "{alive_time:?} {check_time:?}");
}

/// Sends SIGHUP many times, from one shell.
fn hang_up(server: &ServerProcess, times: usize) {
    let script = format!("for number in $(seq {times}); do kill -HUP {}; done", server.id());
    let sent = Command::new("sh").args(["-c", &script]).status().expect("sh is there");
    assert!(sent.success());
}

fn dropped_lines(server: &ServerProcess) -> u64 {
    let metrics = server.ask("GET", "/metrics", "").body;
    let count = metrics.lines().find_map(|line| line.strip_prefix("slidegate_log_lines_dropped_total "));
    count.and_then(|count| count.parse().ok()).expect("a counter")
}
