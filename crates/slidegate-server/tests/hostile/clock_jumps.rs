//! Processes whose clock libfaketime sets: a year ahead, back to the present, before 1970.

use std::process::Command;

use serde_json::Value;

use crate::attack::{Attack, Plan};
use crate::observe::{check, stop};
use crate::program::{Run, command, fresh, output_of};
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "clock jumps",
    holds: "on SQLite a check by a clock far ahead delayed its key by one window at most, two for sliding-counter; a \
            server whose clock shows a time before 1970 answered checks, and said so otherwise",
    carry_out: attack,
};

const WINDOW_MS: u64 = 3_600_000;
const ALGORITHMS: [&str; 6] =
    ["sliding-log", "compact-log", "sliding-buckets", "sliding-counter", "fixed-window", "gcra"];

fn attack(plan: &Plan) -> String {
    let library = faketime_library();
    let algorithms = &ALGORITHMS[..plan.size(2, ALGORITHMS.len())];
    for algorithm in algorithms {
        for days in plan.size(&[365][..], &[1, 365, 3_650]) {
            set_back(&library, algorithm, &format!("+{days}d"));
        }
    }
    let years: &[u32] = plan.size(&[1969], &[1969, 1960, 1902]);
    for year in years {
        before_1970(&library, *year);
    }
    format!("{} algorithms set back; servers in {years:?}", algorithms.len())
}

/// One check by a clock that is ahead, then one by the right clock.
fn set_back(library: &str, algorithm: &str, ahead: &str) {
    let store = format!("sqlite:{}", fresh(algorithm).join("state.db").display());
    let arguments = ["check", "alice", "--limit", "5/1h", "--cost", "5", "--algorithm", algorithm, "--json"];
    let arguments = [&arguments[..], &["--store", &store]].concat();
    let Run { code, out, err } = output_of(at(&mut command(&arguments), library, ahead));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let now = output_of(&mut command(&arguments));
    assert!(now.code < 2, "{algorithm} {ahead}: {now:?}");
    let answer: Value = serde_json::from_str(&now.out).expect("JSON");
    let wait_ms = answer["retry_after_ms"].as_u64().expect("a wait");
    // The windows of some algorithms end at the next boundary, or count the one before.
    let longest_ms = if algorithm == "sliding-counter" { 2 * WINDOW_MS } else { WINDOW_MS + WINDOW_MS / 60 };
    assert!(wait_ms <= longest_ms, "{algorithm} {ahead}: {answer}");
}

fn before_1970(library: &str, year: u32) {
    let arguments = ["serve", "--http", "127.0.0.1:0"];
    let date = format!("@{year}-07-20 20:17:40");
    let server = ServerProcess::start_by(at(&mut command(&arguments), library, &date));
    let mut client = server.connect();
    let statuses: Vec<u16> = (0..6).map(|_| check(&mut client, "default", "alice").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429], "{date}");
    for path in ["/livez", "/metrics", "/v1/rules"] {
        let answer = server.ask("GET", path, "");
        assert_eq!((answer.status, answer.problem().as_str()), (503, "clock"), "{date} {path}");
    }
    stop(server);
}

/// The command with this wall clock.
fn at<'a>(command: &'a mut Command, library: &str, time: &str) -> &'a mut Command {
    command.env("LD_PRELOAD", library).env("FAKETIME", time).env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

/// The library that `faketime` preloads. The program itself starts a child of its own, which would outlive our signals.
fn faketime_library() -> String {
    let mut faketime = Command::new("faketime");
    let asked = faketime.args(["-m", "-f", "+0d", "printenv", "LD_PRELOAD"]).output();
    let remedy = "faketime is missing; install it (Debian: `apt-get install faketime`), or run `cargo xtask test`, which does";
    let output = asked.ok().filter(|output| output.status.success()).expect(remedy);
    String::from_utf8(output.stdout).expect("a path of text").trim().to_owned()
}
