//! `slidegate reset`: forgets what was used.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use slidegate::Applied;

use super::ask::{self, Asked, Meant, Shown, Target};

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
        Meant::Known(answer) => {
            let why = if answer.allowed { "unlimited" } else { "blocked" };
            let text = format!("the key is {why}, nothing is counted");
            return print(Applied::default(), &text, args.shown, out);
        }
        Meant::Asks(question, location) => (question, location),
    };
    let target = Target::open(&location)?;
    let mut all = Applied::default();
    // One after the other: a reset that was made stays made if the next one fails, and doing it again does no harm.
    for request in &question.charges {
        let done = target.reset(&question, request)?;
        all.applied |= done.applied;
        all.units = all.units.saturating_add(done.units);
    }
    let word = if all.units == 1 { "unit" } else { "units" };
    print(all, &format!("{} {word} forgotten", all.units), args.shown, out)
}

fn print(Applied { applied, units }: Applied, text: &str, shown: Shown, out: &mut impl Write) -> Result<()> {
    let json = || json!({ "applied": applied, "units": units }).to_string();
    ask::print_line(&if shown.json { json() } else { format!("reset: {text}") }, shown, out)
}
