//! `slidegate check` charges units from a script, `slidegate peek` asks without charging; the exit status is the
//! answer.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

use super::request::{self, OutputArgs, RequestArgs, Verb};

/// Charge units if the limit admits them; exit status 0 if allowed, 1 if denied
///
/// Checks with the same key, limit and store share one count. A denial costs nothing and says when the same request
/// will pass.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    request: RequestArgs,

    /// Wait until the request passes, at most this long; give up at once if it cannot pass in time
    #[arg(long, value_name = "DURATION", value_parser = request::wait)]
    wait: Option<Duration>,

    #[command(flatten)]
    output: OutputArgs,
}

const HELP: &str = "Example: eight jobs share 9,500 units a day. A search costs 100 units, and searches
may use 500 units in ten minutes. Both limits are charged, or neither:

  slidegate check yt:quota:key1 --limit 9500/24h --cost 100 \\
      --also yt:search:key1=500/10m || exit 0

Exit status: 0 allowed, 1 denied, 2 error (a mistake, or a store that does not
answer; with --on-store-error allow the latter is 0). Ctrl-C while waiting: 130.";

/// Ask whether a check would pass, without charging
///
/// The answer is that of a check now: exit status 0 if it would be allowed, 1 if denied.
#[derive(Debug, clap::Args)]
#[command(after_help = PEEK_HELP)]
pub(super) struct PeekArgs {
    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    output: OutputArgs,
}

const PEEK_HELP: &str = "Example: how much of the day's quota is left?

  slidegate peek yt:quota:key1 --limit 9500/24h --json | jq .remaining

Exit status: 0 it would be allowed, 1 it would be denied, 2 error.";

/// Runs `check` and returns the exit status.
pub(super) fn check(args: &CheckArgs, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    request::send_and_print(&args.request, Verb::Check, args.wait, args.output, out, err)
}

/// Runs `peek` and returns the exit status.
pub(super) fn peek(args: &PeekArgs, out: &mut impl Write, err: &mut impl Write) -> Result<ExitCode> {
    request::send_and_print(&args.request, Verb::Peek, None, args.output, out, err)
}
