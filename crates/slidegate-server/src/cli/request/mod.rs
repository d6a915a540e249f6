//! The code that `check`, `peek`, `reset` and `run` share: from the arguments to the answer.
//!
//! `args` are the arguments, and `plan` is the request that they make, before any store is opened. `location` says
//! where states live, `target` sends the request there, `server` speaks to a slidegate server over `http_client`.
//! `waiting` retries until the request passes. `answer` is the result, `answered` the request with it, whose charge can
//! be given back.

mod answer;
mod answered;
mod args;
mod http_client;
mod location;
mod plan;
mod server;
mod target;
mod values;
mod waiting;

pub(super) use answered::AnsweredRequest;
pub(super) use args::{OutputArgs, RequestArgs};
pub(super) use plan::RequestPlan;
pub(super) use target::{Target, Verb};
pub(super) use values::wait;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use slidegate::time::SystemClock;

use super::output::{error_lines, write_data};
use crate::text::escaped;
use waiting::{FinalAnswer, ProgressLine};

/// Sends the request, and retries until `wait` is over. If the outage policy answers, stderr says why.
pub(super) fn send(
    args: &RequestArgs,
    verb: Verb,
    wait: Option<Duration>,
    quiet: bool,
    err: &mut impl Write,
) -> Result<AnsweredRequest> {
    let (request, location) = match RequestPlan::of(args)? {
        RequestPlan::Answered(answer) => return Ok(AnsweredRequest::new(FinalAnswer::at_once(answer), None)),
        RequestPlan::Ask(request, location) => (request, location),
    };
    let target = Target::open(&location)?;
    let ask = || target.ask(verb, &request);
    let result = match wait {
        None => FinalAnswer::at_once(ask()?),
        Some(wait) => {
            let on_terminal = !quiet && io::stderr().is_terminal();
            let mut progress = ProgressLine { out: io::stderr(), on_terminal, is_drawn: false };
            waiting::until_admitted(wait, &SystemClock::new(), &mut progress, ask)?
        }
    };
    if let Some(why) = &result.answer.store_error {
        // A closed stderr is ignored.
        writeln!(err, "degraded: {}", escaped(why)).ok();
    }
    Ok(AnsweredRequest::new(result, Some(target)))
}

/// Sends the request, prints the answer, and returns the exit status. An answer that cannot be printed is an error, so
/// its charge is given back.
pub(super) fn send_and_print(
    args: &RequestArgs,
    verb: Verb,
    wait: Option<Duration>,
    output: OutputArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<ExitCode> {
    let answered = match send(args, verb, wait, output.quiet, err) {
        Ok(answered) => answered,
        Err(error) => return report(error, output, out),
    };
    if let Err(error) = print(&answered, output, out, err) {
        bail!("{error:#}; {}", answered.give_back());
    }
    Ok(if answered.answer.allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(
    AnsweredRequest { answer, gave_up, .. }: &AnsweredRequest,
    output: OutputArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<()> {
    let text = if output.json { answer.json()? } else { answer.to_string() };
    if let (Some(reason), false) = (gave_up, output.quiet || output.json) {
        writeln!(err, "{reason}").ok();
    }
    print_line(&text, output, out)
}

/// Prints a line, unless `--quiet` is given.
pub(super) fn print_line(text: &str, output: OutputArgs, out: &mut impl Write) -> Result<()> {
    if output.quiet {
        return Ok(());
    }
    write_data(format!("{text}\n").as_bytes(), out)
}

/// With `--json`, prints an error as an object on stdout, so that stderr stays empty. Where that fails too, the error
/// goes to stderr.
pub(super) fn report(error: Error, output: OutputArgs, out: &mut impl Write) -> Result<ExitCode> {
    if output.json && write_error_json(&error, out).is_ok() { Ok(ExitCode::from(2)) } else { Err(error) }
}

/// Writes an error as a JSON object.
pub(super) fn write_error_json(error: &Error, out: &mut impl Write) -> Result<()> {
    let object = serde_json::json!({ "error": error_lines(error).join("\n") });
    write_data(format!("{object}\n").as_bytes(), out)
}
