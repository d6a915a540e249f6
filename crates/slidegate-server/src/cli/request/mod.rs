//! The code that `check`, `peek`, `reset` and `run` share: from the arguments to the answer.
//!
//! `args` are the arguments, and `plan` is the request that they make, before any store is opened. `location` says
//! where states live, `target` sends the request there, `server` speaks to a slidegate server over `http_client`.
//! `waiting` retries until the request passes. `answer` is the result.

mod answer;
mod args;
mod http_client;
mod location;
mod plan;
mod server;
mod target;
mod values;
mod waiting;

pub(super) use args::{OutputArgs, RequestArgs};
pub(super) use plan::RequestPlan;
pub(super) use target::{Target, Verb};
pub(super) use values::wait;
pub(super) use waiting::FinalAnswer;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use slidegate::time::SystemClock;

use super::output::write_data;
use waiting::ProgressLine;

/// Sends the request, and retries until `wait` is over. If the outage policy answers, stderr says why.
pub(super) fn send(
    args: &RequestArgs,
    verb: Verb,
    wait: Option<Duration>,
    quiet: bool,
    err: &mut impl Write,
) -> Result<FinalAnswer> {
    let (request, location) = match RequestPlan::of(args)? {
        RequestPlan::Answered(answer) => return Ok(FinalAnswer::at_once(answer)),
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
        writeln!(err, "degraded: {why}").ok();
    }
    Ok(result)
}

/// Sends the request, prints the answer, and returns the exit status.
pub(super) fn send_and_print(
    args: &RequestArgs,
    verb: Verb,
    wait: Option<Duration>,
    output: OutputArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<ExitCode> {
    let result =
        send(args, verb, wait, output.quiet, err).and_then(|result| print(&result, output, out, err));
    report_error_as_json(output.json, result, out)
}

fn print(
    FinalAnswer { answer, gave_up }: &FinalAnswer,
    output: OutputArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<ExitCode> {
    let text = if output.json { answer.json()? } else { answer.to_string() };
    if let (Some(reason), false) = (gave_up, output.quiet || output.json) {
        writeln!(err, "{reason}").ok();
    }
    print_line(&text, output, out)?;
    Ok(if answer.allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints a line, unless `--quiet` is given.
pub(super) fn print_line(text: &str, output: OutputArgs, out: &mut impl Write) -> Result<()> {
    if output.quiet {
        return Ok(());
    }
    write_data(format!("{text}\n").as_bytes(), out)
}

/// With `--json`, prints an error as an object on stdout, so that stderr stays empty.
pub(super) fn report_error_as_json(
    json: bool,
    result: Result<ExitCode>,
    out: &mut impl Write,
) -> Result<ExitCode> {
    match result {
        Err(error) if json => {
            print_line(&error_json(&format!("{error:#}")), OutputArgs { json, quiet: false }, out)?;
            Ok(ExitCode::from(2))
        }
        result => result,
    }
}

/// An error as a JSON object.
pub(super) fn error_json(text: &str) -> String {
    serde_json::json!({ "error": text }).to_string()
}
