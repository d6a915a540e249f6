//! `slidegate schema`: the JSON schema of configuration files, for editors.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::config;

/// Print the JSON schema of configuration files, for editors that complete and check them
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {}

const HELP: &str = "Example: tell the editor's YAML server, then begin the file with a line that names it:

  slidegate schema > slidegate.schema.json
  # yaml-language-server: $schema=slidegate.schema.json";

/// Prints it.
pub(super) fn run(out: &mut impl Write) -> Result<ExitCode> {
    writeln!(out, "{:#}", config::schema()).context("cannot write to stdout")?;
    Ok(ExitCode::SUCCESS)
}
