//! `slidegate help`: the help of a command or of a topic.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::CommandFactory;

use super::Cli;
use super::output::write_data;
use crate::text::did_you_mean;

/// Explain a command or a topic: algorithms, keys, exit-status
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// A command, or one of: algorithms, keys, exit-status
    #[arg(value_name = "TOPIC")]
    words: Vec<String>,
}

const HELP: &str = "Examples:

  slidegate help algorithms     guarantees of the algorithms, and which one to choose
  slidegate help keys           how to choose keys
  slidegate help exit-status    exit statuses of all commands
  slidegate help check          the same as slidegate check --help";

const TOPICS: [(&str, &str); 3] = [
    ("algorithms", include_str!("help/algorithms.txt")),
    ("keys", include_str!("help/keys.txt")),
    ("exit-status", include_str!("help/exit-status.txt")),
];

/// Prints the help.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    let text = explained(&args.words)?;
    write_data(text.as_bytes(), out)?;
    Ok(ExitCode::SUCCESS)
}

fn explained(words: &[String]) -> Result<String> {
    if let [topic] = words
        && let Some((_, text)) = TOPICS.iter().find(|(name, _)| name == topic)
    {
        return Ok((*text).to_owned());
    }
    let mut command = &Cli::command();
    for word in words {
        let Some(found) = command.find_subcommand(word) else {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let names = [names, TOPICS.map(|(name, _)| name).to_vec()].concat();
            bail!("help: `{word}` is neither a command nor a topic; {}", did_you_mean(word, &names));
        };
        command = found;
    }
    // Rendered from `--help`, so that both texts are the same.
    let line = ["slidegate"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match Cli::command().try_get_matches_from(line) {
        Err(help) => Ok(help.render().to_string()),
        Ok(_) => bail!("help: there is no help for this; see slidegate --help"),
    }
}
