//! The library's suite, run on a tree, and what came of it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::tree::Tree;
use crate::step;

/// A bug may make a loop endless. Several times what the suite takes on a slow machine.
const SECONDS_MAX: &str = "300";

/// What `timeout` answers when time was up.
const TIMED_OUT: i32 = 124;

/// How the line of a test ends that failed.
const FAILED: &str = " ... FAILED";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Names the test that failed first.
    Failed {
        by: String,
    },
    /// A compiler is no test: it would catch the typing error, not the bug.
    NotCompiled {
        errors: String,
    },
}

pub(super) fn run(tree: &Tree) -> Result<Outcome> {
    let build = cargo_test(tree).arg("--no-run").output().context("cannot start cargo")?;
    if !build.status.success() {
        return Ok(Outcome::NotCompiled { errors: String::from_utf8_lossy(&build.stderr).into_owned() });
    }
    let tests = cargo_test(tree);
    // From coreutils: it ends the test programs together with the cargo that started them.
    let mut command = Command::new("timeout");
    command.arg(SECONDS_MAX).arg(tests.get_program()).args(tests.get_args());
    in_tree(&mut command, tree).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = command.spawn().context("cannot start timeout; install coreutils")?;
    let mut said = String::new();
    for line in BufReader::new(running.stdout.take().context("it has no output")?).lines() {
        let line = line?;
        said += &line;
        said += "\n";
        if line.ends_with(FAILED) {
            // One is enough. `timeout` hands the signal on; should all be over just now, there is nobody to get it.
            let _ = Command::new("kill").arg(running.id().to_string()).stderr(Stdio::null()).status();
            break;
        }
    }
    Ok(judged(running.wait()?.code(), &said))
}

fn cargo_test(tree: &Tree) -> Command {
    let mut command = step::cargo("test --package slidegate --lib --tests");
    in_tree(&mut command, tree);
    command
}

fn in_tree<'a>(command: &'a mut Command, tree: &Tree) -> &'a mut Command {
    command.current_dir(&tree.sources).env("CARGO_TARGET_DIR", &tree.build)
}

fn judged(code: Option<i32>, stdout: &str) -> Outcome {
    let mut failed = stdout.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(FAILED));
    let by = match code {
        Some(0) => return Outcome::Passed,
        Some(TIMED_OUT) => "timeout",
        // Without a name, the test program died before it could say one.
        _ => failed.next().unwrap_or("a crash"),
    };
    Outcome::Failed { by: by.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_that_failed_is_named() {
        let stdout = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d ... FAILED\n";
        assert_eq!(judged(Some(101), stdout), Outcome::Failed { by: "a::c".into() });
        assert_eq!(judged(Some(TIMED_OUT), stdout), Outcome::Failed { by: "timeout".into() });
    }

    #[test]
    fn a_program_that_died_failed_and_one_that_ended_well_passed() {
        assert_eq!(judged(None, "test a::b ... "), Outcome::Failed { by: "a crash".into() });
        assert_eq!(judged(Some(0), "test a::b ... ok\n"), Outcome::Passed);
    }
}
