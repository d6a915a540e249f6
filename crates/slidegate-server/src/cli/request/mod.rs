//! What `check`, `peek`, `reset` and `run` share: from what was typed to the answer.
//!
//! `args` is what was typed and `question` what it means, before any store is touched; `location` says where states
//! live, `target` asks there, `server` is a slidegate server as the store. `waiting` asks again until a request
//! passes. `answer` is what came of it.

mod answer;
mod args;
mod exchange;
mod location;
mod question;
mod server;
mod target;
mod values;
mod waiting;

pub(super) use args::{Asked, Shown};
pub(super) use question::Meant;
pub(super) use target::{Target, Verb};
pub(super) use values::wait;
pub(super) use waiting::Ended;

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use slidegate::time::SystemClock;

use waiting::Progress;

/// Asks, and waits if that was wanted. Where the outage policy answers, stderr says why.
pub(super) fn answered(
    asked: &Asked,
    verb: Verb,
    wait: Option<Duration>,
    quiet: bool,
    err: &mut impl Write,
) -> Result<Ended> {
    let (question, location) = match Meant::of(asked)? {
        Meant::Known(answer) => return Ok(Ended::at_once(answer)),
        Meant::Asks(question, location) => (question, location),
    };
    let target = Target::open(&location)?;
    let ask = || target.ask(verb, &question);
    let ended = match wait {
        None => Ended::at_once(ask()?),
        Some(wait) => {
            let on_terminal = !quiet && io::stderr().is_terminal();
            let mut progress = Progress { out: io::stderr(), on_terminal, is_drawn: false };
            waiting::until_admitted(wait, &SystemClock::new(), &mut progress, ask)?
        }
    };
    if let Some(why) = &ended.answer.why {
        // With stderr closed there is nobody left to tell.
        writeln!(err, "degraded: {why}").ok();
    }
    Ok(ended)
}

/// Asks, prints what was answered, and says how the program ends.
pub(super) fn ask(
    asked: &Asked,
    verb: Verb,
    wait: Option<Duration>,
    shown: Shown,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<ExitCode> {
    let ended =
        answered(asked, verb, wait, shown.quiet, err).and_then(|ended| print(&ended, shown, out, err));
    reported(shown.json, ended, out)
}

fn print(
    Ended { answer, gave_up }: &Ended,
    shown: Shown,
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<ExitCode> {
    let text = if shown.json { answer.json()? } else { answer.to_string() };
    if let (Some(reason), false) = (gave_up, shown.quiet || shown.json) {
        writeln!(err, "{reason}").ok();
    }
    print_line(&text, shown, out)?;
    Ok(if answer.allowed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints a line, unless nothing is to be printed.
pub(super) fn print_line(text: &str, shown: Shown, out: &mut impl Write) -> Result<()> {
    if shown.quiet {
        return Ok(());
    }
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The reader has seen enough; the exit status is the answer.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write the answer"),
        _ => Ok(()),
    }
}

/// With `--json`, what went wrong is an object on stdout like any answer, and stderr stays empty.
pub(super) fn reported(json: bool, ended: Result<ExitCode>, out: &mut impl Write) -> Result<ExitCode> {
    match ended {
        Err(error) if json => {
            print_line(&error_json(&format!("{error:#}")), Shown { json, quiet: false }, out)?;
            Ok(ExitCode::from(2))
        }
        ended => ended,
    }
}

/// A mistake or a failure as an object.
pub(super) fn error_json(text: &str) -> String {
    serde_json::json!({ "error": text }).to_string()
}
