//! The log of a server on stderr: JSON lines for machines, text for people.
//!
//! Lines name rules, stores and failures, never keys, which may be personal data; `GET /v1/top` lists the busiest keys.
//! Secrets cannot be logged, because their `Debug` does not print them.

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

/// Parses `--log-format`.
pub(super) fn format(text: &str) -> Result<LogFormat, String> {
    one_of("log_format", text, &[("json", LogFormat::Json), ("text", LogFormat::Text)])
}

/// Parses `--log-level`.
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

/// Installs the log of this process; returns its format, by default text on a terminal.
pub(super) fn install(level: Level, format: Option<LogFormat>) -> Result<LogFormat> {
    let terminal = io::stderr().is_terminal();
    let format = format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let subscriber = subscriber(level, format, terminal, io::stderr);
    let installed = tracing::subscriber::set_global_default(subscriber).ok();
    installed.context("log: is installed already; install it once per process")?;
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
        // Reporting a failed write to stderr would write to stderr, and panic.
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
    fn json_lines_are_objects_with_fields() {
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
    fn text_lines_have_no_colours_in_files() {
        let text = lines(Level::WARN, LogFormat::Text, || {
            tracing::warn!(file = "rules.yaml", "the file was not accepted");
            tracing::info!("not of interest");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("WARN the file was not accepted file=\"rules.yaml\""), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn secrets_are_not_logged() {
        let secret = crate::service::Secret("hunter2".into());
        let text = lines(Level::INFO, LogFormat::Json, || tracing::info!(?secret, "started"));
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_misspelt_value_gets_a_suggestion() {
        assert_eq!(level("debug"), Ok(Level::DEBUG));
        assert_eq!(level("debgu"), Err("log_level: `debgu` is unknown; did you mean `debug`?".to_owned()));
        let error = "log_format: `yaml` is unknown; choose from: json, text";
        assert_eq!(format("yaml"), Err(error.to_owned()));
    }
}
