//! The test suite of a package, run on a tree, and its result.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::tree::Tree;
use crate::step;
use crate::test::SEARCH;

/// A bug may make a loop endless. Several times what a suite takes on a slow machine.
const SECONDS_MAX: &str = "600";

/// The exit code of `timeout` when time is up.
const TIMED_OUT: i32 = 124;

/// The end of the line of a failed test.
const FAILED: &str = " ... FAILED";

/// The tests that judge the mutants of one package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suite {
    package: &'static str,
    /// Arguments of `cargo test`.
    build: &'static str,
    /// Tests of connections and processes, which these bugs cannot fail: without them a suite is quick.
    skipped: &'static [&'static str],
    /// The size of the searches in percent: one failure is enough.
    search_percent: &'static str,
}

const SUITES: [Suite; 3] = [
    Suite {
        package: "slidegate",
        build: "--lib --test library --test allocations",
        skipped: &[],
        search_percent: "100",
    },
    Suite {
        package: "slidegate-redis",
        build: "--test redis_store",
        skipped: &[
            "deadlines",
            "faults",
            "fleet",
            "limiter",
            "redis_doc",
            "language_examples",
            "reconnects",
            "secret",
            "templates",
        ],
        search_percent: "84",
    },
    Suite {
        package: "slidegate-sqlite",
        build: "--lib --tests",
        skipped: &["power_loss", "two_hundred_kills", "the_log_does_not_grow"],
        search_percent: "100",
    },
];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TestResult {
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

impl Suite {
    /// The suite of the package that holds `file`.
    pub(super) fn of(file: &str) -> Result<&'static Self> {
        let folder = file.strip_prefix("crates/").and_then(|path| path.split('/').next());
        let Some(suite) = SUITES.iter().find(|suite| Some(suite.package) == folder) else {
            bail!("no suite judges {file}");
        };
        Ok(suite)
    }

    pub(super) fn package(&self) -> &'static str {
        self.package
    }

    /// Runs the suite until its first failure.
    pub(super) fn run(&self, tree: &Tree) -> Result<TestResult> {
        let build = self.cargo_test(tree).arg("--no-run").output().context("cannot start cargo")?;
        if !build.status.success() {
            let errors = String::from_utf8_lossy(&build.stderr).into_owned();
            return Ok(TestResult::NotCompiled { errors });
        }
        let mut tests = self.cargo_test(tree);
        tests.arg("--");
        for test in self.skipped {
            tests.args(["--skip", test]);
        }
        // From coreutils: it ends the test programs together with the cargo that started them.
        let mut command = Command::new("timeout");
        command.arg(SECONDS_MAX).arg(tests.get_program()).args(tests.get_args());
        in_tree(&mut command, tree)
            .env(SEARCH, self.search_percent)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut running = command.spawn().context("cannot start timeout; install coreutils")?;
        let mut output = String::new();
        for line in BufReader::new(running.stdout.take().context("it has no output")?).lines() {
            let line = line?;
            output += &line;
            output += "\n";
            if line.ends_with(FAILED) {
                // One is enough. `timeout` forwards the signal; all tests may have ended just now.
                let _ = Command::new("kill").arg(running.id().to_string()).stderr(Stdio::null()).status();
                break;
            }
        }
        Ok(result_of(running.wait()?.code(), &output))
    }

    fn cargo_test(&self, tree: &Tree) -> Command {
        let mut command = step::cargo(&format!("test --package {} {}", self.package, self.build));
        in_tree(&mut command, tree);
        command
    }
}

fn in_tree<'a>(command: &'a mut Command, tree: &Tree) -> &'a mut Command {
    command.current_dir(&tree.sources).env("CARGO_TARGET_DIR", &tree.build)
}

fn result_of(code: Option<i32>, stdout: &str) -> TestResult {
    let mut failed = stdout.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(FAILED));
    let by = match code {
        Some(0) => return TestResult::Passed,
        Some(TIMED_OUT) => "timeout",
        // Without a name, the test program died before it could print one.
        _ => failed.next().unwrap_or("a crash"),
    };
    TestResult::Failed { by: by.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failed_test_is_named() {
        let stdout = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest a::d ... FAILED\n";
        assert_eq!(result_of(Some(101), stdout), TestResult::Failed { by: "a::c".into() });
        assert_eq!(result_of(Some(TIMED_OUT), stdout), TestResult::Failed { by: "timeout".into() });
    }

    #[test]
    fn a_crash_is_a_failure_and_exit_code_0_a_pass() {
        assert_eq!(result_of(None, "test a::b ... "), TestResult::Failed { by: "a crash".into() });
        assert_eq!(result_of(Some(0), "test a::b ... ok\n"), TestResult::Passed);
    }

    #[test]
    fn the_package_of_a_file_judges_its_mutants() {
        assert_eq!(Suite::of("crates/slidegate/src/charge.rs").unwrap().package(), "slidegate");
        assert_eq!(
            Suite::of("crates/slidegate-redis/scripts/gcra.lua").unwrap().package(),
            "slidegate-redis"
        );
        assert!(Suite::of("crates/other/src/lib.rs").is_err());
    }
}
