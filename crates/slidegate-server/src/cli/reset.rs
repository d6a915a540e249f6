//! `slidegate reset`: removes the state of a key.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use slidegate::Applied;

use super::request::{self, OutputArgs, RequestArgs, RequestPlan, Target};

/// Reset a key: nothing is used any more
///
/// Give the limit or the rule of the key. --cost and --on-store-error are accepted, so that you can reuse the
/// arguments of a check, and have no effect: a reset removes everything, and a failed reset is an error.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const HELP: &str = "Example: the upstream has renewed the quota, so start again at zero:

  slidegate reset yt:quota:key1 --limit 9500/24h

Exit status: 0 reset, or nothing was used; 2 error.";

/// Resets every given limit and returns the exit status.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    match reset(args, out) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => request::report(error, args.output, out),
    }
}

fn reset(args: &Args, out: &mut impl Write) -> Result<()> {
    let (request, location) = match RequestPlan::of(&args.request)? {
        RequestPlan::Answered(answer) => {
            let why = if answer.allowed { "unlimited" } else { "blocked" };
            let text = format!("the key is {why}, nothing is counted");
            return print(Applied::default(), &text, args.output, out);
        }
        RequestPlan::Ask(request, location) => (request, location),
    };
    let target = Target::open(&location)?;
    let mut all = Applied::default();
    // Not atomic: if one fails, the earlier ones stay reset; repeating is harmless.
    for charge in &request.charges {
        let Applied { applied, units } = target.reset(&request, charge)?;
        all.applied |= applied;
        all.units = all.units.saturating_add(units);
    }
    let word = if all.units == 1 { "unit" } else { "units" };
    print(all, &format!("{} {word} removed", all.units), args.output, out)
}

fn print(
    Applied { applied, units }: Applied,
    text: &str,
    output: OutputArgs,
    out: &mut impl Write,
) -> Result<()> {
    let json = || json!({ "applied": applied, "units": units }).to_string();
    request::print_line(&if output.json { json() } else { format!("reset: {text}") }, output, out)
}
