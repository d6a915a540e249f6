//! `slidegate completions`: completion scripts for shells.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::{Shell, generate};

use super::Cli;
use super::output::write_data;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Which shell
    #[arg(value_parser = shells())]
    shell: Shell,
}

const HELP: &str = "Example: put them where your shell looks for them:

  slidegate completions bash > ~/.local/share/bash-completion/completions/slidegate
  slidegate completions zsh > ~/.zfunc/_slidegate
  slidegate completions fish > ~/.config/fish/completions/slidegate.fish";

/// The shells whose scripts are tested.
fn shells() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(["bash", "zsh", "fish"]).try_map(|name| name.parse::<Shell>())
}

/// Prints the script.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    // Buffered, because `generate` panics on a closed pipe.
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "slidegate", &mut script);
    write_data(&script, out)?;
    Ok(ExitCode::SUCCESS)
}
