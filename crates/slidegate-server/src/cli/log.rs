//! What a server tells whoever runs it, line by line on stderr: JSON for machines, plain text for people.
//!
//! Lines speak of rules, stores and failures, never of a key: that may be somebody's name or address, and who asks
//! most is told by `GET /v1/top`. Secrets cannot be logged, as their types do not show them.

use std::io::{self, IsTerminal};
use std::str::FromStr;

use thiserror::Error;
use tracing::{Level, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

use crate::text::{did_you_mean, shown};

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogOptions {
    pub(crate) level: LogLevel,
    /// People's or machines' form; by default people's on a terminal.
    pub(crate) format: Option<LogFormat>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { level: LogLevel(Level::INFO), format: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// One JSON object per line.
    Json,
    /// One line of text.
    Text,
}

impl FromStr for LogFormat {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(LogError::unknown("log_format", text, &["json", "text"])),
        }
    }
}

/// The least important lines that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLevel(Level);

impl FromStr for LogLevel {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Self, LogError> {
        match text {
            "error" => Ok(Self(Level::ERROR)),
            "warn" => Ok(Self(Level::WARN)),
            "info" => Ok(Self(Level::INFO)),
            "debug" => Ok(Self(Level::DEBUG)),
            _ => Err(LogError::unknown("log_level", text, &["error", "warn", "info", "debug"])),
        }
    }
}

/// Why lines cannot be logged as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum LogError {
    /// Not one of the few.
    #[error("{field}: `{text}` is unknown; {remedy}")]
    Unknown { field: &'static str, text: String, remedy: String },
    /// Lines go somewhere already.
    #[error("log: is installed already; a process has one")]
    Installed,
}

impl LogError {
    fn unknown(field: &'static str, text: &str, known: &[&str]) -> Self {
        Self::Unknown { field, text: shown(text), remedy: did_you_mean(text, known) }
    }
}

/// Sends the lines of this process to stderr; says in which form.
pub(crate) fn install(options: LogOptions) -> Result<LogFormat, LogError> {
    let terminal = io::stderr().is_terminal();
    let format = options.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let subscriber = subscriber(options.level.0, format, terminal, io::stderr);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Installed)?;
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
    use std::sync::{Arc, Mutex, MutexGuard};

    /// What was written, for the test to read.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for &Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written: MutexGuard<Vec<u8>> = self.0.lock().unwrap();
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Written {
        type Writer = &'a Self;

        fn make_writer(&'a self) -> &'a Self {
            self
        }
    }

    fn lines(level: Level, format: LogFormat, log: impl FnOnce()) -> String {
        let written = Written::default();
        tracing::subscriber::with_default(subscriber(level, format, false, written.clone()), log);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
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
        assert_eq!("debug".parse(), Ok(LogLevel(Level::DEBUG)));
        let error = "debgu".parse::<LogLevel>().unwrap_err().to_string();
        assert_eq!(error, "log_level: `debgu` is unknown; did you mean `debug`?");
        let error = "yaml".parse::<LogFormat>().unwrap_err().to_string();
        assert_eq!(error, "log_format: `yaml` is unknown; choose from: json, text");
    }
}
