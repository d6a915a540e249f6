//! `slidegate check` asks for units from a script, `slidegate peek` asks without charging; the exit status is the answer.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::ask::{self, Asked, Shown, Verb};

/// Ask for units; exit status 0 if they were granted, 1 if not
///
/// All who ask with the same key, the same limit and the same store share one count. A refusal costs nothing and
/// says when the same request passes.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    asked: Asked,

    /// Wait until the request passes, but no longer than this; if it cannot pass in time, give up at once
    #[arg(long, value_name = "DURATION", value_parser = ask::wait)]
    wait: Option<Duration>,

    #[command(flatten)]
    shown: Shown,
}

const HELP: &str = "Example: eight jobs share 9,500 units a day, a search costs 100 of them, and
searches may take 500 in ten minutes; both are charged, or neither:

  slidegate check yt:quota:key1 --limit 9500/24h --cost 100 \\
      --also yt:search:key1=500/10m || exit 0

Exit status: 0 allowed, 1 denied, 2 neither (a mistake, or a store that does not
answer; --on-store-error allow turns the latter into 0). Ctrl-C while waiting: 130.";

/// Ask whether units would be granted, without charging them
///
/// The answer is that of a check at this instant: exit status 0 if it would pass, 1 if not.
#[derive(Debug, clap::Args)]
#[command(after_help = PEEK_HELP)]
pub(super) struct PeekArgs {
    #[command(flatten)]
    asked: Asked,

    #[command(flatten)]
    shown: Shown,
}

const PEEK_HELP: &str = "Example: how much of the day's quota is left?

  slidegate peek yt:quota:key1 --limit 9500/24h --json | jq .remaining

Exit status: 0 it would pass, 1 it would be denied, 2 neither.";

/// Asks for units, and says how the program ends.
pub(super) fn check(args: &CheckArgs, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    ask::ask(&args.asked, Verb::Check, args.wait, args.shown, out, err)
}

/// Asks without charging, and says how the program ends.
pub(super) fn peek(args: &PeekArgs, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    ask::ask(&args.asked, Verb::Peek, None, args.shown, out, err)
}
