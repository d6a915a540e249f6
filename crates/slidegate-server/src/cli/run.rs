//! `slidegate run`: runs a command if the limit admits it.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, anyhow};
use clap::ValueHint;

use super::child::RunningCommand;
use super::output::write_error;
use super::request::{self, AnsweredRequest, RequestArgs, Verb};

/// `EX_TEMPFAIL` of sysexits.h: a later attempt may succeed.
const DENIED: u8 = 75;
/// These three are the statuses of `env`, `nice` and `timeout`.
pub(super) const OWN_ERROR: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Run a command if the limit admits it
///
/// Signals are forwarded to the command, and its exit status is returned. slidegate itself prints only a denial, to
/// stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    request: RequestArgs,

    /// Wait until the request passes, at most this long; give up at once if it cannot pass in time
    #[arg(long, value_name = "DURATION", value_parser = request::wait)]
    wait: Option<Duration>,

    /// Print nothing on a denial: the exit status is the answer
    #[arg(long, short)]
    quiet: bool,

    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

const HELP: &str = "Example: at most ten fetches per minute, from all processes together:

  slidegate run fetch --limit 10/1m --wait 30s -- curl -O https://example.org/a

Exit status: that of the command (128+N if signal N ended it); 75 denied,
125 error (a mistake, or a store that does not answer), 126 the command cannot be
executed, 127 it was not found. Units are charged before the command runs, and stay
charged; they are given back if it cannot be started.";

/// Runs the command if admitted, and returns the exit status.
pub(super) fn run(args: &Args, err: &mut impl Write) -> ExitCode {
    match request::send(&args.request, Verb::Check, args.wait, args.quiet, err) {
        Ok(admitted) if admitted.answer.allowed => run_command(&args.command, admitted, err),
        Ok(denied) => {
            if !args.quiet {
                if let Some(reason) = &denied.gave_up {
                    writeln!(err, "{reason}").ok();
                }
                writeln!(err, "{}", denied.answer).ok();
            }
            ExitCode::from(DENIED)
        }
        Err(error) => failed(&error, OWN_ERROR, err),
    }
}

/// Runs the command. What it was charged is given back if it does not start.
fn run_command(words: &[OsString], admitted: AnsweredRequest, err: &mut impl Write) -> ExitCode {
    let Some((program, args)) = words.split_first() else { return ExitCode::from(OWN_ERROR) };
    let name = program.to_string_lossy();
    let error = match RunningCommand::start(program, args) {
        Ok(command) => {
            // Closes the store: the command may run for hours.
            drop(admitted);
            return match command.wait() {
                Ok(status) => ExitCode::from(status),
                Err(error) => failed(
                    &anyhow!("command: the system does not say how `{name}` ended: {error}"),
                    OWN_ERROR,
                    err,
                ),
            };
        }
        Err(error) => error,
    };
    let (status, remedy) = match error.kind() {
        ErrorKind::NotFound => (NOT_FOUND, "check its name and PATH"),
        _ => (NOT_EXECUTABLE, "check that it is a program and that you may execute it"),
    };
    let charge = admitted.give_back();
    failed(&anyhow!("command: cannot run `{name}`: {error}; {remedy}; {charge}"), status, err)
}

fn failed(error: &Error, status: u8, err: &mut impl Write) -> ExitCode {
    write_error(error, err);
    ExitCode::from(status)
}
