//! The command line: what was typed, and which command runs.
//!
//! Data goes to stdout, everything else to stderr. Exit status 2 means that something could not be
//! done, and the last line on stderr says what.

mod check;
mod colour;
mod config;
mod demo;
mod duration;
mod files;
mod live;
mod redis;
mod replay;
mod schema;
mod serve;
mod validate;

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
  slidegate serve            answer over HTTP, in memory, on 127.0.0.1:8080
  slidegate demo             watch a fixed window let twice its limit through
  slidegate replay --help    ask any algorithm about traffic of your own
  slidegate check --help     ask for units from a script";

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Demo(demo::Args),
    Redis(redis::Args),
    Replay(replay::Args),
    Serve(serve::Args),
    Validate(validate::Args),
    Schema(schema::Args),
    Config(config::Args),
}

/// Runs the command and says how the program ends.
pub(crate) fn run(cli: &Cli, out: &mut impl Write, err: &mut impl Write) -> ExitCode {
    let ended = match &cli.command {
        Command::Check(args) => check::run(args, out, err),
        Command::Demo(args) => demo::run(args, out, err),
        Command::Redis(args) => redis::run(args, out),
        Command::Replay(args) => replay::run(args, out, err),
        Command::Serve(args) => serve::run(args, err),
        Command::Validate(args) => validate::run(args, out, err),
        Command::Schema(_) => schema::run(out),
        Command::Config(args) => config::run(args, out),
    };
    ended.unwrap_or_else(|error| {
        // With stderr closed there is nobody left to tell.
        let _ = writeln!(err, "error: {error:#}");
        ExitCode::from(2)
    })
}
