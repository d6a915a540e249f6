//! `slidegate run`: exit status, signals and denials.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::program::{Run, command, file_of, fresh, output_of};

/// `slidegate run` of a command under a high limit, on a file of this test.
fn running(store: &str, words: &[&str]) -> Command {
    command(&[&["run", "job", "--limit", "1000/1h", "--store", store, "--"], words].concat())
}

/// The same with default signal handlers: tests that run in the background may inherit ignored signals.
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
fn the_exit_status_is_that_of_the_command() {
    let store = new_file();
    for status in [0, 1, 7, 75, 125, 255] {
        let ran =
            output_of(&mut running(&store, &["sh", "-c", &format!("echo out; echo err >&2; exit {status}")]));
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (status, "out\n", "err\n"));
    }
    let text = file_of("plain.txt", "no program");
    for (word, status, expected) in [
        ("no-such-program", 127, "error: command: cannot run `no-such-program`: "),
        (text.as_str(), 126, "error: command: cannot run `"),
        (env!("CARGO_MANIFEST_DIR"), 126, "error: command: cannot run `"),
    ] {
        let Run { code, out, err } = output_of(&mut running(&store, &[word]));
        assert_eq!((code, out.as_str()), (status, ""), "{err}");
        assert!(err.starts_with(expected) && err.contains("; check ") && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn a_denied_command_does_not_run() {
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
    assert_eq!(waited.code, 75, "it gives up at once");
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
fn the_command_inherits_stdin_and_stdout_but_no_file_of_the_store() {
    let store = new_file();
    let mut child = running(&store, &["sh", "-c", "cat; ls /proc/self/fd"]).spawn().expect("it starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), b"through\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let out = String::from_utf8(output.stdout).expect("text");
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("through"));
    // No file of the store is left open: the others were open before.
    let open_before = fs::read_dir("/proc/self/fd").expect("Linux").count();
    assert!(lines.count() <= open_before.max(4), "{out}");
    let open = output_of(&mut running(&store, &["sh", "-c", "ls -l /proc/self/fd"])).out;
    assert!(!open.contains("state.db"), "{open}");
}

#[test]
fn signals_are_forwarded_to_the_command() {
    let store = new_file();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)] {
        // `ready` means that the trap is set; a signal interrupts `wait`.
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
        // Kept open: at the end of stdin the command would exit.
        let input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert_eq!(lines.next().expect("a line").expect("text"), "ready");
        send(signal, child.id());
        assert_eq!(child.wait().expect("it ends").code(), Some(128 + number), "{signal}");
        drop(input);
    }
}

#[test]
fn a_command_killed_by_signal_n_has_status_128_plus_n() {
    let store = new_file();
    for (signal, status) in [("TERM", 143), ("KILL", 137), ("ABRT", 134)] {
        let ran = output_of(&mut running(&store, &["sh", "-c", &format!("kill -{signal} $$")]));
        assert_eq!((ran.code, ran.out.as_str()), (status, ""), "{signal}");
    }
}

/// As under `nohup`.
#[test]
fn the_command_inherits_ignored_signals() {
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
