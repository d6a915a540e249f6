//! The commands on a local file, their default store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::Value;

use crate::program::{Run, command, file_of, fresh, output_of, run};
use crate::server_process::ServerProcess;

/// The URL of a file that does not exist yet.
fn new_file(name: &str) -> String {
    format!("sqlite:{}", fresh(name).join("state.db").display())
}

fn check(store: &str, args: &[&str]) -> Run {
    run(&[&["check"], args, &["--store", store]].concat(), "")
}

/// Runs the program with only these environment variables.
fn with_environment(args: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut program = command(args);
    output_of(program.env_clear().envs(variables.iter().copied()))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn the_exit_status_is_the_answer_and_the_output_has_the_numbers() {
    let store = new_file("store");
    let args = ["yt:quota:key1", "--limit", "5/24h", "--cost", "2"];
    for left in ["3", "1"] {
        let Run { code, out, err } = check(&store, &args);
        assert_eq!((code, err.as_str()), (0, ""));
        assert_eq!(out, format!("allowed: {left} of 5 units left (rule sliding-log/86400s)\n"));
    }
    let Run { code, out, err } = check(&store, &args);
    assert_eq!((code, err.as_str()), (1, ""));
    // Rounded up to minutes.
    assert_eq!(out, "denied: 1 of 5 units left, retry in 24h (rule sliding-log/86400s)\n");
    let json: Value =
        serde_json::from_str(&check(&store, &[&args[..], &["--json"]].concat()).out).expect("JSON");
    assert_eq!(
        (&json["allowed"], &json["remaining"], &json["degraded"]),
        (&false.into(), &1.into(), &false.into())
    );
    for (cost, code) in [("2", 1), ("1", 0)] {
        let quiet = check(&store, &["yt:quota:key1", "--limit", "5/24h", "--cost", cost, "--quiet"]);
        assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (code, "", ""));
    }
}

#[test]
fn a_peek_charges_nothing_and_a_reset_starts_again_at_zero() {
    let store = new_file("store");
    let args = ["alice", "--limit", "3/1h", "--store", &store];
    let ask = |verb: &str, more: &[&str]| run(&[&[verb], &args[..], more].concat(), "");
    assert_eq!(ask("check", &["--cost", "2"]).code, 0);
    for _ in 0..3 {
        let peeked = ask("peek", &[]);
        assert_eq!(
            (peeked.code, peeked.out.as_str()),
            (0, "allowed: 1 of 3 units left (rule sliding-log/3600s)\n")
        );
    }
    let peeked = ask("peek", &["--cost", "2"]);
    assert_eq!(peeked.code, 1);
    assert!(peeked.out.starts_with("denied: 1 of 3 units left, retry in "), "{}", peeked.out);
    assert_eq!(ask("reset", &[]).out, "reset: 2 units removed\n");
    assert_eq!(ask("reset", &["--json", "--cost", "3"]).out, "{\"applied\":false,\"units\":0}\n");
    assert_eq!(ask("check", &["--cost", "3"]).code, 0);
    let quiet = ask("reset", &["--quiet"]);
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (0, "", ""));
}

#[test]
fn several_limits_are_charged_all_or_none() {
    let store = new_file("store");
    let search = [
        "quota",
        "--limit",
        "950/24h",
        "--cost",
        "100",
        "--also",
        "search=300/10m",
        "--also",
        "calls=9/1m@1",
    ];
    for left in ["200", "100", "0"] {
        let output = check(&store, &search).out;
        assert!(
            output.contains(&format!(" {left} of 300 units left")) || output.contains(" of 9 units"),
            "{output}"
        );
    }
    let denied = check(&store, &[&search[..], &["--json"]].concat());
    let answer: Value = serde_json::from_str(&denied.out).expect("JSON");
    assert_eq!((denied.code, &answer["rule"]), (1, &"sliding-log/600s".into()));
    let used: Vec<_> =
        answer["checks"].as_array().expect("several").iter().map(|check| &check["used"]).collect();
    assert_eq!(used, [300, 300, 3], "nothing of it was charged");
    let output = check(&store, &search).out;
    assert!(
        output.starts_with("denied: 0 of 300 units left, retry in ") && output.ends_with(", key search)\n"),
        "{output}"
    );
    let unlimited = file_of("rules.yaml", "rules: { api: { limit: 1/1m, overrides: { ci: unlimited } } }");
    let free = ["ci", "--rule", "api", "--config", &unlimited];
    assert_eq!(check(&store, &free).out, "allowed: the key is unlimited (rule api)\n");
    let also = [&free[..], &["--also", "builds=1/1h"]].concat();
    assert_eq!((check(&store, &also).code, check(&store, &also).code), (0, 1), "the other limit holds");
}

#[test]
fn the_default_store_is_a_private_file_of_the_user() {
    let home = fresh("home");
    let path = home.to_str().expect("text");
    let args = ["check", "alice", "--limit", "9/1h"];
    assert_eq!(
        with_environment(&args, &[("HOME", path)]).out,
        "allowed: 8 of 9 units left (rule sliding-log/3600s)\n"
    );
    let directory = home.join(".local/state/slidegate");
    assert_eq!((mode(&directory), mode(&directory.join("state.db"))), (0o700, 0o600));
    // XDG_STATE_HOME moves it.
    let elsewhere = home.join("elsewhere");
    let elsewhere = elsewhere.to_str().expect("text");
    let out = with_environment(&args, &[("HOME", path), ("XDG_STATE_HOME", elsewhere)]).out;
    assert!(out.contains("8 of 9"), "{out}");
    assert!(Path::new(elsewhere).join("slidegate/state.db").exists());
    // SLIDEGATE_STORE names any store, and the flag takes precedence.
    let named = format!("sqlite:{path}/named.db?durability=normal");
    let variables = [("HOME", path), ("SLIDEGATE_STORE", named.as_str())];
    for left in ["8", "7"] {
        let out = with_environment(&args, &variables).out;
        assert!(out.contains(&format!("{left} of 9")), "{out}");
    }
    let other = new_file("flag");
    let flag = [&args[..], &["--store", &other]].concat();
    assert!(with_environment(&flag, &variables).out.contains("8 of 9"));
    // Without both, the store of the configuration is used.
    let config = file_of(
        "rules.yaml",
        format!("rules: {{ api: {{ limit: 9/1h }} }}\nstore: sqlite:{path}/configured.db\n"),
    );
    let by_rule = ["check", "alice", "--rule", "api", "--config", &config];
    assert_eq!(with_environment(&by_rule, &[("HOME", path)]).out, "allowed: 8 of 9 units left (rule api)\n");
    assert!(home.join("configured.db").exists());
}

#[test]
fn a_file_that_cannot_be_opened_is_reported_and_left_unchanged() {
    let note =
        file_of("note.txt", "this is no database, and it is long enough to look like one\n".repeat(20));
    let before = fs::read(&note).expect("a file");
    let below = format!("sqlite:{note}/state.db");
    let missing = format!("sqlite:{}/missing/state.db", fresh("empty").display());
    for (store, expected) in [
        (format!("sqlite:{note}").as_str(), "is no SQLite database"),
        (&below, "cannot be opened"),
        (&missing, "its directory does not exist"),
    ] {
        let Run { code, out, err } = check(store, &["alice", "--limit", "5/m"]);
        assert_eq!((code, out.as_str()), (2, ""), "{store}");
        assert!(
            err.starts_with("error: store: ") && err.contains(expected) && err.lines().count() == 1,
            "{err}"
        );
        let json = check(store, &["alice", "--limit", "5/m", "--json"]);
        assert_eq!((json.code, json.err.as_str()), (2, ""));
        let error: Value = serde_json::from_str(&json.out).expect("an object");
        assert!(error["error"].as_str().is_some_and(|text| text.contains(expected)), "{error}");
        let passed = check(store, &["alice", "--limit", "5/m", "--on-store-error", "allow"]);
        assert_eq!(passed.code, 0, "the outage policy applies");
        assert!(passed.err.starts_with("degraded: store: "), "{}", passed.err);
    }
    assert_eq!(fs::read(&note).expect("still there"), before);
    // The directory of the user's own file cannot be created.
    let Run { code, err, .. } = with_environment(&["check", "alice", "--limit", "5/m"], &[("HOME", &note)]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot create") && err.contains("--store sqlite:PATH"), "{err}");
    let Run { code, err, .. } = with_environment(&["check", "alice", "--limit", "5/m"], &[]);
    assert_eq!((code, err.lines().count()), (2, 1));
    assert!(err.contains("set HOME"), "{err}");
}

#[test]
fn two_hundred_concurrent_processes_share_one_count() {
    // Long enough for a slow machine.
    let store = format!("{}?durability=normal&deadline=120s", new_file("store"));
    let args = ["check", "yt:quota:key1", "--limit", "50/1h", "--store", &store];
    let started: Vec<Child> = (0..200).map(|_| command(&args).spawn().expect("it starts")).collect();
    let (mut allowed, mut denied) = (0, 0);
    for child in started {
        let output = child.wait_with_output().expect("it ends");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => allowed += 1,
            Some(1) => denied += 1,
            other => panic!("{other:?}: {err}"),
        }
        assert_eq!(err, "");
    }
    assert_eq!((allowed, denied), (50, 150));
    let peeked = run(&["peek", "yt:quota:key1", "--limit", "50/1h", "--store", &store, "--json"], "").out;
    assert!(peeked.contains(r#""used":50,"#), "{peeked}");
}

#[test]
fn a_server_and_the_commands_share_counts_in_a_file() {
    let store = new_file("store");
    let config = file_of("rules.yaml", "rules: { api: { limit: 3/1h } }");
    let ask = || check(&store, &["alice", "--rule", "api", "--config", &config]);
    assert_eq!(ask().out, "allowed: 2 of 3 units left (rule api)\n");
    let server = ServerProcess::start(&["--config", &config, "--store", &store]);
    let body = r#"{"rule":"api","key":"alice"}"#;
    let answer = server.ask("POST", "/v1/check", body);
    assert_eq!((answer.status, &answer.json()["remaining"]), (200, &1.into()));
    let receipt = answer.json()["receipt"].clone();
    assert_eq!(ask().code, 0);
    assert_eq!(server.ask("POST", "/v1/check", body).status, 429);
    drop(server);
    // The secret of receipts is in the file, so receipts stay valid after a restart.
    let server = ServerProcess::start(&["--config", &config, "--store", &store]);
    let refund = serde_json::json!({ "receipt": receipt }).to_string();
    assert_eq!(server.ask("POST", "/v1/refund", &refund).json()["applied"], true);
    assert_eq!(ask().code, 0);
}

#[test]
fn worked_examples_have_the_same_answers_on_a_file() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut judged = 0;
    for trace in fs::read_dir(&examples).expect("examples").map(|file| file.expect("a name").path()) {
        if trace.extension().is_none_or(|ending| ending != "jsonl") {
            continue;
        }
        let store = format!("{}?durability=normal", new_file("store"));
        let config = trace.with_extension("yaml");
        let (trace_path, config_path) = (trace.display().to_string(), config.display().to_string());
        let mut args = vec!["replay", &trace_path, "--store", &store];
        if config.exists() {
            args.extend(["--config", &config_path]);
        }
        let Run { code, out, err } = run(&args, "");
        assert_eq!((code, err.as_str()), (0, ""), "{trace_path}");
        assert_eq!(out, fs::read_to_string(trace.with_extension("out")).expect("answers"), "{trace_path}");
        judged += 1;
    }
    assert_eq!(judged, 11);
}

#[test]
fn a_closed_pipe_does_not_change_the_answer() {
    let store = new_file("store");
    let line = format!(
        "'{}' check alice --limit 1/1h --store '{store}' >&- ; echo $?",
        env!("CARGO_BIN_EXE_slidegate")
    );
    let statuses: Vec<String> = (0..2)
        .map(|_| {
            let output =
                Command::new("sh").args(["-c", &format!("({line}) 2>/dev/null")]).output().expect("sh");
            String::from_utf8(output.stdout).expect("text")
        })
        .collect();
    assert_eq!(statuses, ["0\n", "1\n"]);
}
