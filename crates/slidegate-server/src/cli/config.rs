//! `slidegate config example` prints an example configuration; `slidegate schema` prints the JSON schema for editors.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use super::output::write_data;
use crate::config;

/// Print an example configuration
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

/// Print the JSON schema of configuration files, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = SCHEMA_HELP)]
pub(super) struct SchemaArgs {}

const SCHEMA_HELP: &str = "Example: save the schema, and name it in the first line of the configuration file:

  slidegate schema > slidegate.schema.json
  # yaml-language-server: $schema=slidegate.schema.json";

/// Prints the example.
pub(super) fn example(args: &ExampleArgs, out: &mut impl Write) -> Result<ExitCode> {
    let Command::Example = args.command;
    write_data(config::EXAMPLE.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the schema.
pub(super) fn schema(out: &mut impl Write) -> Result<ExitCode> {
    write_data(format!("{:#}\n", config::schema()).as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}
