//! `--wait`, with and without a terminal.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::program::{Run, command, fresh, output_of};
use crate::server::RedisServer;

/// Moves the cursor to the start of the line and clears the line.
const CLEAR: &str = "\r\u{1b}[K";

fn new_file() -> String {
    format!("sqlite:{}/state.db?durability=normal", fresh("store").display())
}

fn check(args: &[&str]) -> Run {
    output_of(&mut command(&[&["check"], args].concat()))
}

/// The program on a pseudo-terminal that `script` opens; its input comes from a pipe.
fn on_a_terminal(args: &[&str]) -> Child {
    let words: Vec<String> = args.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("exec '{}' {}", env!("CARGO_BIN_EXE_slidegate"), words.join(" "));
    // Tests that run in the background may inherit ignored signals.
    Command::new("env")
        .args([
            "--default-signal=INT,QUIT",
            "script",
            "--quiet",
            "--flush",
            "--return",
            "--command",
            &line,
            "/dev/null",
        ])
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("script is there (util-linux)")
}

/// Reads the output of the terminal up to `mark`.
fn shown_until(child: &mut Child, mark: &str) -> String {
    let mut shown = Vec::new();
    let out = child.stdout.as_mut().expect("piped");
    let mut byte = [0];
    while !String::from_utf8_lossy(&shown).contains(mark) {
        assert_eq!(out.read(&mut byte).expect("it shows more"), 1, "{}", String::from_utf8_lossy(&shown));
        shown.extend(byte);
    }
    String::from_utf8_lossy(&shown).into_owned()
}

/// The exit code and the rest of the output.
fn ended(mut child: Child) -> (Option<i32>, String) {
    let mut rest = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut rest).expect("text");
    (child.wait().expect("it ends").code(), rest)
}

#[test]
fn a_terminal_shows_the_wait_and_then_only_the_answer() {
    let store = new_file();
    let args = ["alice", "--limit", "1/2s", "--store", &store];
    assert_eq!(check(&args).code, 0);
    let mut child = on_a_terminal(&[&["check"], &args[..], &["--wait", "60s"]].concat());
    let shown = shown_until(&mut child, "for rule sliding-log/2s");
    assert!(shown.contains(&format!("{CLEAR}waiting ")), "{shown:?}");
    let (code, rest) = ended(child);
    assert_eq!(code, Some(0), "{rest:?}");
    assert!(
        rest.ends_with(&format!("{CLEAR}allowed: 0 of 1 units left (rule sliding-log/2s)\r\n")),
        "{rest:?}"
    );
}

#[test]
fn the_progress_line_is_redrawn_every_second() {
    let store = new_file();
    let args = ["alice", "--limit", "1/2s", "--store", &store];
    assert_eq!(check(&args).code, 0);
    let child = on_a_terminal(&[&["run"], &args[..], &["--wait", "60s", "--", "echo", "ran"]].concat());
    let (code, shown) = ended(child);
    assert_eq!(code, Some(0), "{shown:?}");
    let drawn: Vec<&str> = shown.split(CLEAR).collect();
    assert!(drawn.len() >= 3, "{shown:?}");
    let (last, before) = drawn.split_last().expect("some");
    assert_eq!((*last, before[0]), ("ran\r\n", ""), "{shown:?}");
    for line in &before[1..] {
        assert!(line.starts_with("waiting ") && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn ctrl_c_ends_the_wait_and_nothing_is_charged() {
    let store = new_file();
    let args = ["alice", "--limit", "1/1h", "--store", &store];
    assert_eq!(check(&args).code, 0);
    let mut child = on_a_terminal(&[&["check"], &args[..], &["--wait", "2h"]].concat());
    shown_until(&mut child, "waiting ");
    child.stdin.as_mut().expect("piped").write_all(b"\x03").expect("it listens");
    let (code, rest) = ended(child);
    assert_eq!(code, Some(130), "{rest:?}");
    assert!(!rest.contains("allowed") && !rest.contains("denied"), "{rest:?}");
    let peeked = output_of(&mut command(&[&["peek"], &args[..], &["--json"]].concat())).out;
    assert!(peeked.contains(r#""used":1,"#), "{peeked}");
}

#[test]
fn a_wait_that_is_too_long_gives_up_at_once() {
    let store = new_file();
    let args = ["alice", "--limit", "1/1h", "--store", &store, "--wait", "30s"];
    assert_eq!(check(&args).code, 0);
    let refused = check(&args);
    assert_eq!(refused.code, 1);
    assert!(refused.out.starts_with("denied: 0 of 1 units left, retry in "), "{}", refused.out);
    assert_eq!(refused.err, "gave up: the request passes in 60m, and --wait 30s ends before that\n");
    let quiet = check(&[&args[..], &["--quiet"]].concat());
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (1, "", ""));
    let child = on_a_terminal(&[&["check"], &args[..]].concat());
    let (code, shown) = ended(child);
    assert_eq!(code, Some(1));
    assert!(!shown.contains("waiting"), "{shown:?}");
}

#[test]
fn all_waiting_processes_pass_and_a_pipe_shows_no_progress() {
    let redis = RedisServer::start();
    for store in [new_file(), redis.url()] {
        let args = ["check", "alice", "--limit", "3/1s", "--store", &store, "--wait", "120s"];
        let waiting: Vec<Child> = (0..7).map(|_| command(&args).spawn().expect("it starts")).collect();
        for child in waiting {
            let output = child.wait_with_output().expect("it ends");
            assert_eq!(
                (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
                (Some(0), "")
            );
        }
    }
}
