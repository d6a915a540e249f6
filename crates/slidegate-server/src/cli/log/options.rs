//! The flags `--log-format` and `--log-level`.

use tracing::Level;

use crate::text::{did_you_mean, excerpt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum LogFormat {
    /// One JSON object per line.
    Json,
    /// One line of text.
    Text,
}

/// Parses `--log-format`.
pub(in crate::cli) fn format(text: &str) -> Result<LogFormat, String> {
    one_of("log_format", text, &[("json", LogFormat::Json), ("text", LogFormat::Text)])
}

/// Parses `--log-level`.
pub(in crate::cli) fn level(text: &str) -> Result<Level, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_value_gets_a_suggestion() {
        assert_eq!(level("debug"), Ok(Level::DEBUG));
        assert_eq!(level("debgu"), Err("log_level: `debgu` is unknown; did you mean `debug`?".to_owned()));
        let error = "log_format: `yaml` is unknown; choose from: json, text";
        assert_eq!(format("yaml"), Err(error.to_owned()));
    }
}
