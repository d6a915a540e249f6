//! Runs the program.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

/// The exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// The answers, each parsed.
    pub(crate) fn answers(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).expect("every answer is JSON");
        self.out.lines().map(parse).collect()
    }
}

/// A command that runs the program without a terminal.
pub(crate) fn command(args: &[&str]) -> Command {
    command_by(&[], args)
}

/// The same, started by a program that becomes it: `&["sh", "-c", "exec \"$0\" \"$@\""]`.
pub(crate) fn command_by(wrapper: &[&str], args: &[&str]) -> Command {
    let words = [wrapper, &[env!("CARGO_BIN_EXE_slidegate")], args].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The environment of the developer must not change the tests.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SLIDEGATE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the program on `input`.
pub(crate) fn run(args: &[&str], input: impl Into<Vec<u8>>) -> Run {
    let mut child = command(args).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.into();
    // In a thread, because full pipes would block both sides.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("the input is written or nobody reads it");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        code: output.status.code().expect("the program was not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Runs a command without input.
pub(crate) fn output_of(command: &mut Command) -> Run {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        code: output.status.code().expect("the program was not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Replays lines under a valid configuration.
pub(crate) fn replay(config: &str, lines: &[String]) -> Run {
    let file = file_of("replay.yaml", config);
    run(&["replay", "--config", &file], lines.join("\n"))
}

/// Writes a file for this test and returns its path.
pub(crate) fn file_of(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = scratch("").join(name);
    fs::write(&path, content).expect("a file for the test");
    path.into_os_string().into_string().expect("a path of text")
}

/// A directory for this test. It may contain files of an earlier run.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let thread = thread::current();
    let test = thread.name().unwrap_or("main").replace("::", "-");
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test).join(name);
    fs::create_dir_all(&directory).expect("a directory for the test");
    directory
}

/// An empty directory for this test.
pub(crate) fn fresh(name: &str) -> PathBuf {
    let directory = scratch(name);
    fs::remove_dir_all(&directory).expect("what an earlier run left goes");
    scratch(name)
}
