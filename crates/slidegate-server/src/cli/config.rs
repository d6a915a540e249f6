//! `slidegate config example`: a configuration file to begin with.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::config;

/// Print a configuration to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print an example that uses every field, each with a comment
    #[command(after_help = HELP)]
    Example,
}

const HELP: &str = "Example:

  slidegate config example > slidegate.yaml
  slidegate validate slidegate.yaml";

/// Prints it.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    match args.command {
        Command::Example => out.write_all(config::EXAMPLE.as_bytes()).context("cannot write to stdout")?,
    }
    Ok(ExitCode::SUCCESS)
}
