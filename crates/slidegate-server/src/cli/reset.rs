//! `slidegate reset`: forgets what was used.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;

use super::ask::{self, Answer, Asked, Meant, Shown, Target};

/// Forget what a key has used
///
/// It is as if the key had never asked. Give the limit or the rule that it is counted under; --cost and
/// --on-store-error are accepted, so that the line of a check can be used again, and change nothing: all is
/// forgotten, and a reset that was not made is an error.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "Example: the upstream has raised the quota, begin anew:

  slidegate reset yt:quota:key1 --limit 9500/24h

Exit status: 0 forgotten, or there was nothing to forget; 2 not done.";

/// Resets every limit that is named, and says how the program ends.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    let ended = reset(args, out).map(|()| ExitCode::SUCCESS);
    ask::reported(args.shown.json, ended, out)
}

fn reset(args: &Args, out: &mut impl Write) -> Result<()> {
    let (question, location) = match Meant::of(&args.asked)? {
        Meant::Known(answer) => return nothing(&answer, args.shown, out),
        Meant::Asks(question, location) => (question, location),
    };
    let target = Target::open(&location)?;
    let (mut applied, mut units) = (false, 0_u64);
    // One after the other: a reset that was made stays made if the next one fails, and doing it again does no harm.
    for request in &question.charges {
        let done = target.reset(&question, request)?;
        applied |= done.applied;
        units = units.saturating_add(done.units);
    }
    let text = if args.shown.json {
        serde_json::to_string(&json!({ "applied": applied, "units": units })).context("numbers are JSON")?
    } else {
        let word = if units == 1 { "unit" } else { "units" };
        format!("reset: {units} {word} forgotten")
    };
    ask::print_line(&text, args.shown, out)
}

/// An override has the answer to every request, and nothing is counted.
fn nothing(answer: &Answer, shown: Shown, out: &mut impl Write) -> Result<()> {
    let text = if shown.json {
        r#"{"applied":false,"units":0}"#.to_owned()
    } else {
        let why = if answer.allowed { "unlimited" } else { "blocked" };
        format!("reset: the key is {why}, nothing is counted")
    };
    ask::print_line(&text, shown, out)
}
