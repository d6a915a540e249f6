//! `slidegate run`: runs a command if it is admitted.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, Result};
use clap::ValueHint;

use super::ask::{self, Asked, Verb};
use super::child;
use crate::text::escaped;

/// A refusal that later attempts may not meet, as sendmail and its like have it (`EX_TEMPFAIL`).
const DENIED: u8 = 75;
/// These three as `env`, `nice` and `timeout` have them.
pub(super) const OWN_ERROR: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a command if it is admitted
///
/// Signals reach the command, and its exit status is the status. Nothing is printed but what it prints; a refusal goes
/// to stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,

    /// Wait until the request passes, but no longer than this; if it cannot pass in time, give up at once
    #[arg(long, value_name = "DURATION", value_parser = ask::wait)]
    wait: Option<Duration>,

    /// Say nothing about a refusal: the exit status tells
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const HELP: &str = "Example: at most ten fetches a minute, whoever starts them:

  slidegate run fetch --limit 10/1m --wait 30s -- curl -O https://example.org/a

Exit status: that of the command (128+N if signal N ended it); 75 denied,
125 a mistake or a store that does not answer, 126 the command cannot be executed,
127 it was not found. Units are charged before it runs, and stay charged.";

/// Runs the command, or says why not.
pub(super) fn run(args: &Args, err: &mut impl Write) -> ExitCode {
    match admitted(args, err) {
        Ok(true) => run_command(&args.command, err),
        Ok(false) => ExitCode::from(DENIED),
        Err(error) => failed(&error, OWN_ERROR, err),
    }
}

/// Asks. Whatever was opened for it is closed again: nothing is held while the command runs.
fn admitted(args: &Args, err: &mut impl Write) -> Result<bool> {
    let ended = ask::answered(&args.asked, Verb::Check, args.wait, args.quiet, err)?;
    if !ended.answer.allowed && !args.quiet {
        if let Some(reason) = &ended.gave_up {
            writeln!(err, "{reason}").ok();
        }
        writeln!(err, "{}", ended.answer).ok();
    }
    Ok(ended.answer.allowed)
}

fn run_command(words: &[OsString], err: &mut impl Write) -> ExitCode {
    let Some((program, args)) = words.split_first() else { return ExitCode::from(OWN_ERROR) };
    let error = match child::run(program, args) {
        Ok(status) => return ExitCode::from(status),
        Err(error) => error,
    };
    let (status, remedy) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "check its name and PATH"),
        _ => (NOT_EXECUTABLE, "check that it is a program and that you may execute it"),
    };
    let program = escaped(&program.to_string_lossy());
    failed(&anyhow::anyhow!("command: cannot run `{program}`: {error}; {remedy}"), status, err)
}

fn failed(error: &Error, status: u8, err: &mut impl Write) -> ExitCode {
    // With stderr closed there is nobody left to tell.
    writeln!(err, "error: {error:#}").ok();
    ExitCode::from(status)
}
