//! `slidegate redis`: the Redis scripts, for programs in other languages.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use slidegate_redis::scripts;

use super::output::write_data;
use crate::text::did_you_mean;

/// Print the Redis scripts, so that programs in other languages can share limits
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Script(Script),
}

/// Print a script; its head documents KEYS, ARGV and the reply
///
/// A program that calls it makes the same decisions as slidegate, on the same states.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
struct Script {
    /// The script: check, peek, refund, settle, credit, reset, inspect or change
    name: String,
}

const HELP: &str = "Example: charge 1 of 5 per minute for alice, from redis-cli:

  sha=$(slidegate redis script check | redis-cli -x script load)
  redis-cli evalsha $sha 1 'sg:{alice}:api' '' $RANDOM 1 sliding-log 5 60000000";

/// Prints the script.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    let Command::Script(Script { name }) = &args.command;
    let scripts = scripts::all();
    let Some(script) = scripts.iter().find(|script| script.name == *name) else {
        let names: Vec<&str> = scripts.iter().map(|script| script.name).collect();
        bail!("script: `{name}` is unknown; {}", did_you_mean(name, &names));
    };
    write_data(script.text.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}
