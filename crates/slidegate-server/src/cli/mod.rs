//! The command line: arguments and commands.
//!
//! Data goes to stdout, everything else to stderr. Exit status 2 is an error, which the last line on stderr explains;
//! `run` has statuses of its own.

mod check;
mod child;
mod completions;
mod config;
mod demo;
mod duration;
mod help;
mod log;
mod man;
mod output;
mod redis;
mod replay;
mod request;
mod reset;
mod run;
mod serve;
mod token;
mod usage;
mod validate;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rate limiting that holds: no window, wherever it starts, contains more than its limit.
#[derive(Debug, Parser)]
#[command(name = "slidegate", version, arg_required_else_help = true, after_help = START)]
#[command(disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const START: &str = "Start here:
  slidegate serve            answer over HTTP, in memory, on 127.0.0.1:8080
  slidegate demo             see a fixed window admit twice its limit
  slidegate check --help     check a limit from a script
  slidegate run --help       run a command only if the limit admits it
  slidegate replay --help    test any algorithm on your own traffic
  slidegate help algorithms  which algorithm to choose; also: help keys, help exit-status";

#[derive(Debug, Subcommand)]
enum Command {
    Check(Box<check::CheckArgs>),
    Peek(Box<check::PeekArgs>),
    Reset(Box<reset::Args>),
    Run(Box<run::Args>),
    Serve(serve::Args),
    Demo(demo::Args),
    Replay(replay::Args),
    Validate(validate::Args),
    Schema(config::SchemaArgs),
    Config(config::ExampleArgs),
    Redis(redis::Args),
    Token(token::Args),
    Completions(completions::Args),
    Man(man::Args),
    Help(help::Args),
}

/// Runs a command line, the name of the program first, and returns the exit status.
pub(crate) fn main(args: &[OsString], out: &mut impl Write, err: &mut impl Write) -> ExitCode {
    match Cli::try_parse_from(args) {
        Ok(cli) => run(&cli, out, err),
        Err(error) => usage::report(&error, args, out, err),
    }
}

fn run(cli: &Cli, out: &mut impl Write, err: &mut impl Write) -> ExitCode {
    let result = match &cli.command {
        Command::Check(args) => check::check(args, out, err),
        Command::Peek(args) => check::peek(args, out, err),
        Command::Reset(args) => reset::run(args, out),
        Command::Run(args) => return run::run(args, err),
        Command::Serve(args) => serve::run(args),
        Command::Demo(args) => demo::run(args, out, err),
        Command::Replay(args) => replay::run(args, out, err),
        Command::Validate(args) => validate::run(args, out, err),
        Command::Schema(_) => config::schema(out),
        Command::Config(args) => config::example(args, out),
        Command::Redis(args) => redis::run(args, out),
        Command::Token(_) => token::run(out),
        Command::Completions(args) => completions::run(args, out),
        Command::Man(args) => man::run(args, out),
        Command::Help(args) => help::run(args, out),
    };
    result.unwrap_or_else(|error| {
        output::write_error(&error, err);
        ExitCode::from(2)
    })
}
