//! The log of a server, line by line on stderr: JSON for machines, plain text for people.
//!
//! Lines speak of rules, stores and failures, never of a key: that may be a name or an address, and who asks
//! most is told by `GET /v1/top`. Secrets cannot be logged, as their types do not show them.

use std::io::{self, IsTerminal};

use anyhow::{Context, Result};
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

use crate::text::{did_you_mean, excerpt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogFormat {
    /// One JSON object per line.
    Json,
    /// One line of text.
    Text,
}

/// Reads a form of lines.
pub(super) fn format(text: &str) -> Result<LogFormat, String> {
    one_of("log_format", text, &[("json", LogFormat::Json), ("text", LogFormat::Text)])
}

/// Reads the least important lines that are written.
pub(super) fn level(text: &str) -> Result<Level, String> {
    let levels =
        [("error", Level::ERROR), ("warn", Level::WARN), ("info", Level::INFO), ("debug", Level::DEBUG)];
    one_of("log_level", text, &levels)
}

fn one_of<T: Copy>(field: &str, text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        format!("{field}: `{}` is unknown; {}", excerpt(text), did_you_mean(text, &names))
    })
}

/// Sends the lines of this process to stderr; says in which form, by default people's on a terminal.
pub(super) fn install(level: Level, format: Option<LogFormat>) -> Result<LogFormat> {
    let terminal = io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let subscriber = subscriber(level, format, terminal, io::stderr);
    let installed = tracing::subscriber::set_global_default(subscriber).ok();
    installed.context("log: is installed already; a process has one")?;
    Ok(format)
}

fn subscriber<W>(level: Level, format: LogFormat, colours: bool, to: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(to)
        // Where nobody reads stderr any more there is nowhere to complain, and trying would panic.
        .log_internal_errors(false);
    match format {
        LogFormat::Json => Box::new(lines.json().flatten_event(true).with_current_span(false).finish()),
        LogFormat::Text => Box::new(lines.with_ansi(colours).finish()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn lines(level: Level, format: LogFormat, log: impl FnOnce()) -> String {
        let (reader, writer) = io::pipe().unwrap();
        tracing::subscriber::with_default(subscriber(level, format, false, Mutex::new(writer)), log);
        io::read_to_string(reader).unwrap()
    }

    #[test]
    fn json_lines_are_objects_with_their_fields() {
        let text = lines(Level::INFO, LogFormat::Json, || {
            tracing::info!(rules = 3, file = "rules \"1\"\n.yaml", "rules replaced");
            tracing::debug!("not of interest");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "rules replaced");
        assert_eq!((&line["rules"], &line["file"]), (&3.into(), &"rules \"1\"\n.yaml".into()));
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }

    #[test]
    fn text_lines_are_for_people_and_colourless_in_files() {
        let text = lines(Level::WARN, LogFormat::Text, || {
            tracing::warn!(file = "rules.yaml", "the file was not accepted");
            tracing::info!("not of interest");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("WARN the file was not accepted file=\"rules.yaml\""), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn secrets_do_not_show() {
        let secret = crate::service::Secret("hunter2".into());
        let text = lines(Level::INFO, LogFormat::Json, || tracing::info!(?secret, "started"));
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn what_is_misspelt_is_answered_with_what_was_meant() {
        assert_eq!(level("debug"), Ok(Level::DEBUG));
        assert_eq!(level("debgu"), Err("log_level: `debgu` is unknown; did you mean `debug`?".to_owned()));
        let error = "log_format: `yaml` is unknown; choose from: json, text";
        assert_eq!(format("yaml"), Err(error.to_owned()));
    }
}
