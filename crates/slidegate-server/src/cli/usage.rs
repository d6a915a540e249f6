//! A command line that is not understood, in one sentence with the remedy.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::ask;
use super::run::OWN_ERROR;
use crate::text::{escaped, excerpt};

/// Commands that answer with JSON where that is asked for, mistakes included.
const JSON_COMMANDS: [&str; 3] = ["check", "peek", "reset"];

/// Prints help and versions, or what is wrong, and says how the program ends.
pub(super) fn refuse(
    error: &clap::Error,
    args: &[OsString],
    out: &mut impl Write,
    err: &mut impl Write,
) -> ExitCode {
    // Nobody may be left to tell; the exit status tells all the same.
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        _ => {}
    }
    let command = args.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let sentence = escaped(&sentence(error, command));
    let ours = args.iter().take_while(|word| *word != "--");
    if JSON_COMMANDS.contains(&command) && ours.into_iter().any(|word| word == "--json") {
        let _ = writeln!(out, "{}", ask::error_json(&sentence));
    } else {
        let _ = writeln!(err, "error: {sentence}");
    }
    ExitCode::from(if command == "run" { OWN_ERROR } else { 2 })
}

fn sentence(error: &clap::Error, command: &str) -> String {
    let text = |kind| text_of(error.get(kind));
    let help =
        if command.is_empty() || command.starts_with('-') || error.kind() == ErrorKind::InvalidSubcommand {
            "slidegate --help".to_owned()
        } else {
            format!("slidegate {} --help", excerpt(command))
        };
    let argument = unadorned(&text(ContextKind::InvalidArg).unwrap_or_default());
    let value = excerpt(&text(ContextKind::InvalidValue).unwrap_or_default());
    match error.kind() {
        // The reader of a value says what it should be; most name the flag and the remedy.
        ErrorKind::ValueValidation => match error.source().map(ToString::to_string) {
            Some(source) if source.contains("; ") => source,
            source => {
                let remedy = source.unwrap_or_else(|| format!("see {help}"));
                format!("{argument}: `{value}` is not understood; {remedy}")
            }
        },
        ErrorKind::InvalidValue => match text(ContextKind::ValidValue) {
            _ if value.is_empty() => format!("{argument}: has no value; see {help}"),
            Some(valid) => format!("{argument}: `{value}` is unknown; choose from: {valid}"),
            None => format!("{argument}: `{value}` is not understood; see {help}"),
        },
        ErrorKind::UnknownArgument => {
            let remedy = match text(ContextKind::SuggestedArg) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if command == "run" && !argument.starts_with('-') => {
                    "put the command and its arguments after `--`".to_owned()
                }
                None => format!("see {help}"),
            };
            format!("`{}` is not understood; {remedy}", excerpt(&argument))
        }
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            let remedy = match text(ContextKind::SuggestedSubcommand) {
                // The likeliest comes last.
                Some(nearest) => {
                    format!("did you mean `{}`?", nearest.rsplit(", ").next().unwrap_or_default())
                }
                None => format!("see {help}"),
            };
            format!("`{}` is not a command; {remedy}", excerpt(&word))
        }
        ErrorKind::MissingRequiredArgument if argument == "--limit RATE" => {
            "limit: is missing; give --limit 60/1m, or --rule NAME with --config FILE".to_owned()
        }
        ErrorKind::MissingRequiredArgument => format!("{argument}: is missing; see {help}"),
        ErrorKind::MissingSubcommand => format!("a command is missing; see {help}"),
        ErrorKind::ArgumentConflict => match text(ContextKind::PriorArg) {
            Some(prior) if unadorned(&prior) == argument => {
                format!("{argument}: is given twice; give it once")
            }
            Some(prior) => {
                format!("{argument}: cannot be used with {}; remove one of them", unadorned(&prior))
            }
            None => format!("{argument}: cannot be used with the others; see {help}"),
        },
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8; write it as UTF-8".to_owned(),
        ErrorKind::TooManyValues => format!("{argument}: takes no value; see {help}"),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("{}; see {help}", line.strip_prefix("error: ").unwrap_or(line))
        }
    }
}

/// `--limit <RATE>` as `--limit RATE`: brackets are for those who know what they mean.
fn unadorned(argument: &str) -> String {
    argument.replace(['<', '>'], "")
}

/// What an error says about something, if anything.
fn text_of(value: Option<&ContextValue>) -> Option<String> {
    match value? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) if !texts.is_empty() => Some(texts.join(", ")),
        _ => None,
    }
}
