//! `slidegate config example`: a configuration file to begin with; `slidegate schema`: what editors need to check one.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::config;

/// Print a configuration to begin with
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE_HELP)]
pub(super) struct ExampleArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print an example that uses every field, each with a comment
    #[command(after_help = EXAMPLE_HELP)]
    Example,
}

const EXAMPLE_HELP: &str = "Example:

  slidegate config example > slidegate.yaml
  slidegate validate slidegate.yaml";

/// Print the JSON schema of configuration files, for editors that complete and check them
#[derive(Debug, clap::Args)]
#[command(after_help = SCHEMA_HELP)]
pub(super) struct SchemaArgs {}

const SCHEMA_HELP: &str =
    "Example: tell the editor's YAML server, then begin the file with a line that names it:

  slidegate schema > slidegate.schema.json
  # yaml-language-server: $schema=slidegate.schema.json";

/// Prints the example.
pub(super) fn example(args: &ExampleArgs, out: &mut impl Write) -> Result<ExitCode> {
    let Command::Example = args.command;
    out.write_all(config::EXAMPLE.as_bytes()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the schema.
pub(super) fn schema(out: &mut impl Write) -> Result<ExitCode> {
    writeln!(out, "{:#}", config::schema()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
