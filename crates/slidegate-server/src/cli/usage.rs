//! Errors in the arguments, as one sentence with the remedy.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::output::{write_error, written};
use super::request;
use super::run::OWN_ERROR;
use crate::text::{did_you_mean, excerpt};

/// Commands with `--json`, which print errors as JSON too.
const JSON_COMMANDS: [&str; 3] = ["check", "peek", "reset"];

/// Prints help, the version or an error, and returns the exit status.
pub(super) fn report(
    error: &clap::Error,
    args: &[OsString],
    out: &mut impl Write,
    err: &mut impl Write,
) -> ExitCode {
    let command = args.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let status = ExitCode::from(if command == "run" { OWN_ERROR } else { 2 });
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return match written(error.print().and_then(|()| out.flush())) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    write_error(&error, err);
                    status
                }
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A closed stderr is ignored.
            let _ = error.print();
            return ExitCode::from(2);
        }
        _ => {}
    }
    let sentence = anyhow!(sentence(error, command));
    let mut own_args = args.iter().take_while(|word| *word != "--");
    let json = JSON_COMMANDS.contains(&command) && own_args.any(|word| word == "--json");
    if !json || request::write_error_json(&sentence, out).is_err() {
        write_error(&sentence, err);
    }
    status
}

fn sentence(error: &clap::Error, command: &str) -> String {
    let text = |kind| text_of(error.get(kind));
    let help =
        if command.is_empty() || command.starts_with('-') || error.kind() == ErrorKind::InvalidSubcommand {
            "slidegate --help".to_owned()
        } else {
            format!("slidegate {} --help", excerpt(command))
        };
    let argument = without_brackets(&text(ContextKind::InvalidArg).unwrap_or_default());
    let value = excerpt(&text(ContextKind::InvalidValue).unwrap_or_default());
    match error.kind() {
        // The parser of the value explains the error; most name the flag and the remedy.
        ErrorKind::ValueValidation => match error.source().map(ToString::to_string) {
            Some(source) if source.contains("; ") => source,
            source => {
                let remedy = source.unwrap_or_else(|| format!("see {help}"));
                format!("{argument}: `{value}` is not understood; {remedy}")
            }
        },
        ErrorKind::InvalidValue => match text(ContextKind::ValidValue) {
            _ if value.is_empty() => format!("{argument}: has no value; see {help}"),
            Some(valid) => {
                let known: Vec<&str> = valid.split(", ").collect();
                format!("{argument}: `{value}` is unknown; {}", did_you_mean(&value, &known))
            }
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
                // The best match is last.
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
            Some(prior) if without_brackets(&prior) == argument => {
                format!("{argument}: is given twice; give it once")
            }
            Some(prior) => {
                format!("{argument}: cannot be used with {}; remove one of them", without_brackets(&prior))
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

/// `--limit <RATE>` as `--limit RATE`.
fn without_brackets(argument: &str) -> String {
    argument.replace(['<', '>'], "")
}

/// The text of a context value of clap, if any.
fn text_of(value: Option<&ContextValue>) -> Option<String> {
    match value? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) if !texts.is_empty() => Some(texts.join(", ")),
        _ => None,
    }
}
