//! `slidegate redis`: the Redis scripts, for programs in other languages.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::builder::PossibleValuesParser;
use slidegate::Algorithm;
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

/// Print a script; its head is its contract: KEYS, ARGV, reply, errors, TTL, an example
///
/// A program that calls it makes the same decisions as slidegate, on the same states. Replies are text-safe: clients may
/// decode them.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
struct Script {
    /// The script: check, peek, refund, settle, credit, reset, inspect or change
    name: String,

    /// Print the short script of check or peek for one limit of this algorithm
    ///
    /// At most 150 lines. Outside the domain that its head describes it writes nothing, and its error names the general
    /// script, which takes the same KEYS and ARGV.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)))]
    #[arg(hide_possible_values = true)]
    algorithm: Option<String>,
}

const HELP: &str = "Example: charge 1 of 5 per minute for alice, from redis-cli:

  sha=$(slidegate redis script check | redis-cli -x script load)
  redis-cli evalsha $sha 1 'sg:{alice}:api' '' $RANDOM 1 sliding-log 5 60000000

The short script of one algorithm: slidegate redis script check --algorithm gcra";

/// Prints the script.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    let Command::Script(Script { name, algorithm }) = &args.command;
    let scripts = scripts::all();
    let Some(script) = scripts.iter().find(|script| script.name == *name) else {
        let names: Vec<&str> = scripts.iter().map(|script| script.name).collect();
        bail!("script: `{name}` is unknown; {}", did_you_mean(name, &names));
    };
    let script = match algorithm {
        None => script,
        Some(algorithm) => scripts::short(name, algorithm).ok_or_else(|| {
            anyhow!("--algorithm: `{name}` has no short script, only check and peek have; leave it out")
        })?,
    };
    write_data(script.text.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}
