//! Runs one command that must succeed.

use std::env;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Prints the name of a step.
pub(crate) fn heading(name: &str) {
    println!("== {name}");
}

/// `cargo` with these arguments, separated by blanks, of the toolchain that runs xtask.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args.split_whitespace());
    command
}

/// Runs a step and prints how long it took. The error of a failed step has its name and the remedy.
pub(crate) fn run(name: &str, command: &mut Command, remedy: &str) -> Result<()> {
    heading(name);
    let program = command.get_program().to_owned();
    #[expect(clippy::disallowed_methods, reason = "it measures how long the step takes")]
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("{name}: cannot start {}", program.display()))?;
    ensure!(status.success(), "{name} failed; {remedy}");
    println!("== {name}: {} s", begin.elapsed().as_secs());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step_and_the_remedy() {
        let error = run("nonsense", &mut Command::new("false"), "do not do that").unwrap_err();
        assert_eq!(error.to_string(), "nonsense failed; do not do that");
        let error = run("absent", &mut Command::new("no-such-program"), "").unwrap_err();
        assert_eq!(error.to_string(), "absent: cannot start no-such-program");
    }
}
