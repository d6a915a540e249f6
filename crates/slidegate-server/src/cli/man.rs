//! `slidegate man`: manual pages, generated from the same definitions as `--help`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::{Command, CommandFactory, ValueHint};
use clap_mangen::Man;

use super::Cli;
use super::output::write_data;
use crate::text::escaped;

/// Print the manual page, or write a page per command
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// Write slidegate.1, slidegate-check.1 and so on to this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

const HELP: &str = "Example:

  slidegate man | man -l -
  slidegate man --dir ~/.local/share/man/man1 && man slidegate-check";

/// Prints or writes the pages.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    match &args.dir {
        None => write_data(&page(&command)?, out)?,
        Some(dir) => write_all(&command, dir)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page))
        .and_then(|()| man.render_options_section(&mut page))
        .context("cannot write the page")?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page).context("cannot write the page")?;
    }
    if let Some(examples) = command.get_after_help() {
        page.extend_from_slice(unfilled(&examples.to_string()).as_bytes());
    }
    Ok(page)
}

/// The examples without filling, so that they can be pasted.
fn unfilled(text: &str) -> String {
    let mut section = String::from(".SH EXAMPLES\n.nf\n");
    for line in text.lines() {
        let line = line.replace('\\', "\\\\").replace('-', "\\-");
        // A line that begins with these would be a roff request.
        section.push_str(if line.starts_with(['.', '\'']) { "\\&" } else { "" });
        section.push_str(&line);
        section.push('\n');
    }
    section.push_str(".fi\n");
    section
}

/// Writes the pages of a command and its subcommands, under the names that `man` looks up.
fn write_all(command: &Command, dir: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = dir.join(format!("{name}.1"));
    let name = || escaped(&path.display().to_string());
    fs::write(&path, page(command)?).map_err(|error| {
        anyhow!("dir: cannot write {}: {error}; create the directory, or choose another", name())
    })?;
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .try_for_each(|command| write_all(command, dir))
}
