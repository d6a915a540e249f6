//! `slidegate peek`: asks without charging.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::ask::{self, Asked, Shown, Verb};

/// Ask whether units would be granted, without charging them
///
/// The answer is that of a check at this instant: exit status 0 if it would pass, 1 if not.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "Example: how much of the day's quota is left?

  slidegate peek yt:quota:key1 --limit 9500/24h --json | jq .remaining

Exit status: 0 it would pass, 1 it would be denied, 2 neither.";

/// Asks, and says how the program ends.
pub(super) fn run(args: &Args, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    let ended = ask::answered(&args.asked, Verb::Peek, None, args.shown.quiet, err)
        .and_then(|ended| ask::print(&ended, args.shown, out, err));
    ask::reported(args.shown.json, ended, out)
}
