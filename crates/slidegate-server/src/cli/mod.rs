//! The command line: what was typed, and which command runs.
//!
//! Data goes to stdout, everything else to stderr. Exit status 2 means that something could not be
//! done, and the last line on stderr says what.

mod check;
mod colour;
mod demo;
mod duration;
mod live;
mod redis;
mod replay;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rate limiting that holds: no window, wherever it starts, contains more than its limit.
#[derive(Debug, Parser)]
#[command(name = "slidegate", version, arg_required_else_help = true, after_help = START)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const START: &str = "Start here:
  slidegate demo             watch a fixed window let twice its limit through
  slidegate replay --help    ask any algorithm about traffic of your own
  slidegate check --help     ask for units from a script";

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Demo(demo::Args),
    Redis(redis::Args),
    Replay(replay::Args),
}

/// Runs the command and says how the program ends.
pub(crate) fn run(cli: &Cli, out: &mut impl Write, err: &mut impl Write) -> ExitCode {
    let ended = match &cli.command {
        Command::Check(args) => check::run(args, out, err),
        Command::Demo(args) => demo::run(args, out, err),
        Command::Redis(args) => redis::run(args, out),
        Command::Replay(args) => replay::run(args, out, err),
    };
    ended.unwrap_or_else(|error| {
        // With stderr closed there is nobody left to tell.
        let _ = writeln!(err, "error: {error:#}");
        ExitCode::from(2)
    })
}
