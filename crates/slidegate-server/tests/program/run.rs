//! `slidegate run`: the command's own status and signals, or why it did not run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::program::{Run, command, file_of, fresh, output_of};

/// The program that runs these words under a limit that is far away, on a file of this test.
fn running(store: &str, words: &[&str]) -> Command {
    command(&[&["run", "job", "--limit", "1000/1h", "--store", store, "--"], words].concat())
}

/// The same with all signals as they are by default: whoever runs tests in the background may have told us to ignore
/// some, and that is inherited.
fn running_by_default(store: &str, words: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_slidegate")]);
    command.args(["run", "job", "--limit", "1000/1h", "--store", store, "--"]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn new_file() -> String {
    format!("sqlite:{}/state.db?durability=normal", fresh("store").display())
}

#[test]
fn the_status_is_that_of_the_command() {
    let store = new_file();
    for status in [0, 1, 7, 75, 125, 255] {
        let ran =
            output_of(&mut running(&store, &["sh", "-c", &format!("echo out; echo err >&2; exit {status}")]));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (status, "out\n", "err\n"));
    }
    let text = file_of("plain.txt", "no program");
    for (word, status, said) in [
        ("no-such-program", 127, "error: command: cannot run `no-such-program`: "),
        (text.as_str(), 126, "error: command: cannot run `"),
        (env!("CARGO_MANIFEST_DIR"), 126, "error: command: cannot run `"),
    ] {
        let Run { code, out, err } = output_of(&mut running(&store, &[word]));
        assert_eq!((code, out.as_str()), (status, ""), "{err}");
        assert!(err.starts_with(said) && err.contains("; check ") && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn a_refused_command_does_not_run() {
    let store = new_file();
    let mark = fresh("marks").join("mark");
    let touch =
        ["run", "job", "--limit", "1/1h", "--store", &store, "--", "touch", mark.to_str().expect("text")];
    assert_eq!(output_of(&mut command(&touch)).code, 0);
    fs::remove_file(&mark).expect("it ran");
    let Run { code, out, err } = output_of(&mut command(&touch));
    assert_eq!((code, out.as_str()), (75, ""));
    assert!(err.starts_with("denied: 0 of 1 units left, retry in ") && err.lines().count() == 1, "{err}");
    let quiet = output_of(&mut command(&[&["run", "--quiet"], &touch[1..]].concat()));
    assert_eq!((quiet.code, quiet.out.as_str(), quiet.err.as_str()), (75, "", ""));
    let waited = output_of(&mut command(&[&["run", "--wait", "1s"], &touch[1..]].concat()));
    assert_eq!(waited.code, 75, "an hour is not waited for");
    assert!(waited.err.starts_with("gave up: the request passes in "), "{}", waited.err);
    assert!(!mark.exists());
    let broken = output_of(&mut command(&[
        "run",
        "job",
        "--limit",
        "5/m",
        "--store",
        "http://127.0.0.1:1",
        "--",
        "true",
    ]));
    assert_eq!(broken.code, 125);
    let allowed =
        ["run", "job", "--limit", "5/m", "--store", "http://127.0.0.1:1", "--on-store-error", "allow"];
    let degraded = output_of(&mut command(&[&allowed[..], &["--", "echo", "ran"]].concat()));
    assert_eq!((degraded.code, degraded.out.as_str()), (0, "ran\n"));
    assert!(degraded.err.starts_with("degraded: "), "{}", degraded.err);
}

#[test]
fn the_command_has_what_we_were_given_and_nothing_of_ours() {
    let store = new_file();
    let mut child = running(&store, &["sh", "-c", "cat; ls /proc/self/fd"]).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"through\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let out = String::from_utf8(output.stdout).expect("text");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("through"));
    // Nothing of ours is left open: what else there is was open before us.
    let open_before = fs::read_dir("/proc/self/fd").expect("Linux").count();
    assert!(lines.count() <= open_before.max(4), "{out}");
    let open = output_of(&mut running(&store, &["sh", "-c", "ls -l /proc/self/fd"])).out;
    assert!(!open.contains("state.db"), "{open}");
}

#[test]
fn signals_reach_the_command_and_its_end_by_one_is_seen() {
    let store = new_file();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)] {
        // It says when it listens; `wait` is what a signal interrupts.
        let script =
            format!("trap 'echo got {signal}; kill $!; exit 9' {signal}; sleep 600 & echo ready; wait");
        let mut child = running_by_default(&store, &["bash", "-c", &script]).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "ready");
        send(signal, child.id());
        assert_eq!(lines.next().expect("a line").expect("text"), format!("got {signal}"));
        assert_eq!(child.wait().expect("it ends").code(), Some(9), "{signal}");

        let mut child =
            running_by_default(&store, &["sh", "-c", "echo ready; exec cat"]).spawn().expect("it starts");
        // Kept open: at its end the command would end by itself.
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "ready");
        send(signal, child.id());
        assert_eq!(child.wait().expect("it ends").code(), Some(128 + number), "{signal}");
        drop(input);
    }
}

#[test]
fn the_end_by_a_signal_is_a_status() {
    let store = new_file();
    for (signal, status) in [("TERM", 143), ("KILL", 137), ("ABRT", 134)] {
        let ran = output_of(&mut running(&store, &["sh", "-c", &format!("kill -{signal} $$")]));
        assert_eq!((ran.code, ran.out.as_str()), (status, ""), "{signal}");
    }
}

/// As under `nohup`: the command ignores what we were told to ignore.
#[test]
fn what_is_ignored_stays_ignored() {
    let store = new_file();
    let program = env!("CARGO_BIN_EXE_slidegate");
    let line = format!(
        "trap '' HUP; exec '{program}' run job --limit 9/1h --store '{store}' -- sh -c 'kill -HUP $$; kill -HUP $PPID; echo here'"
    );
    let output = Command::new("sh").args(["-c", &line]).output().expect("sh is there");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "here\n"));
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().expect("kill is there");
    assert!(sent.success());
}
