//! Rules given with the charge itself.

use slidegate::rate::{LIMIT_MAX, parse_window};
use slidegate::rule::{BUCKETS_MAX, ENTRIES_MAX, ENTRIES_MIN};
use slidegate::{Rate, RateError, Rule};

use thiserror::Error;

use super::fields::{Fields, Malformed};
use super::{AlgorithmText, shown};

/// Why a rule that came with a charge is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum InlineError {
    /// A wrong type, an unknown or a missing field.
    #[error("{0}")]
    Malformed(Malformed),
    /// Its fields are there, and do not make a rule.
    #[error("{0}")]
    Rule(String),
}

impl From<Malformed> for InlineError {
    fn from(text: Malformed) -> Self {
        Self::Malformed(text)
    }
}

/// Fields that only rules of a configuration file have.
const CONFIGURED_ONLY: [&str; 4] = ["headroom", "limits", "on_store_error", "shadow"];

/// Reads `{"limit":5,"window":"60s","algorithm":"sliding-log"}`.
pub(crate) fn read(mut fields: Fields) -> Result<Rule, InlineError> {
    for name in CONFIGURED_ONLY {
        if fields.take(name).is_some() {
            let path = fields.path(name);
            return Err(InlineError::Rule(format!(
                "{path}: is not for inline rules; put the rule into a configuration file"
            )));
        }
    }
    let limit = fields.required_whole("limit", 1..=LIMIT_MAX)?;
    let window_text = fields.required_text("window")?;
    let (algorithm, edge) = (fields.text("algorithm")?, fields.text("edge")?);
    let text = AlgorithmText {
        algorithm: algorithm.as_deref(),
        buckets: fields.whole("buckets", 1..=BUCKETS_MAX.into())?,
        edge: edge.as_deref(),
        entries: fields.whole("entries", ENTRIES_MIN.into()..=ENTRIES_MAX.into())?,
    };
    let prefix = fields.path("");
    fields.finish()?;
    let bad = |text: String| InlineError::Rule(format!("{prefix}{text}"));
    let window = parse_window(&window_text).ok_or_else(|| {
        let shown = shown(&window_text);
        bad(format!(
            "window: `{shown}` is not a window; write a number and ms, s, m, h or d, for example 60s"
        ))
    })?;
    let rate = Rate::new(limit, window).map_err(|error| match error {
        RateError::Window { .. } => bad(RateError::WindowText { text: shown(&window_text) }.to_string()),
        other => bad(other.to_string()),
    })?;
    let algorithm = text.parse().map_err(|errors| bad(errors[0].to_string()))?;
    Ok(Rule::inline(rate, algorithm))
}
