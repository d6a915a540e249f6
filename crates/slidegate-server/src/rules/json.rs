//! A charge in JSON, in bodies and traces: `{"rule":"api","key":"alice"}`, with a tag or an inline rule.

use slidegate::rate::{LIMIT_MAX, parse_window};
use slidegate::rule::{BUCKETS_MAX, ENTRIES_MAX, ENTRIES_MIN};
use slidegate::ruleset::{InlineRule, RuleRef};
use slidegate::{ChargeRequest, Rate, RateError};
use thiserror::Error;

use super::AlgorithmFields;
use crate::text::excerpt;
use crate::text::fields::{Fields, Malformed};
use crate::text::json::Json;

/// Why an inline rule is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum InlineError {
    /// A field of the wrong type, unknown or missing.
    #[error("{0}")]
    Malformed(Malformed),
    /// Fields that do not make a rule.
    #[error("{0}")]
    Rule(String),
}

impl From<Malformed> for InlineError {
    fn from(text: Malformed) -> Self {
        Self::Malformed(text)
    }
}

/// Fields that only rules of a configuration file may have.
const CONFIGURED_ONLY: [&str; 4] = ["headroom", "limits", "on_store_error", "shadow"];

/// Reads `rule`, `key` and `tag` of an object and leaves its other fields; the units are `cost`.
pub(crate) fn charge_request(fields: &mut Fields, cost: u64) -> Result<ChargeRequest<'static>, InlineError> {
    let found = fields.take("rule");
    let rule = match fields.required("rule", found)? {
        Json::Text(name) => RuleRef::Named(name.into()),
        Json::Object(rule) => RuleRef::Inline(inline_rule(Fields::new(fields.path("rule."), rule))?),
        other => return Err(fields.wrong("rule", "the name of a rule or an inline rule", &other).into()),
    };
    let request = ChargeRequest::new(rule, fields.required_text("key")?, cost);
    Ok(request.with_tag(fields.text("tag")?.as_deref()))
}

/// Reads `{"limit":5,"window":"60s","algorithm":"sliding-log"}` or `{"limit":"5/60s","algorithm":"sliding-log"}`.
fn inline_rule(mut fields: Fields) -> Result<InlineRule, InlineError> {
    for name in CONFIGURED_ONLY {
        if fields.take(name).is_some() {
            let path = fields.path(name);
            return Err(InlineError::Rule(format!(
                "{path}: is not for inline rules; put the rule into a configuration file"
            )));
        }
    }
    let rate = rate(&mut fields)?;
    let (algorithm, edge) = (fields.text("algorithm")?, fields.text("edge")?);
    let algorithm_fields = AlgorithmFields {
        algorithm: algorithm.as_deref(),
        buckets: fields.whole("buckets", 1..=BUCKETS_MAX.into())?,
        edge: edge.as_deref(),
        entries: fields.whole("entries", ENTRIES_MIN.into()..=ENTRIES_MAX.into())?,
    };
    let prefix = fields.path("");
    fields.finish()?;
    let bad = |text: String| InlineError::Rule(format!("{prefix}{text}"));
    let rate = rate.map_err(bad)?;
    let algorithm = algorithm_fields.parse().map_err(|errors| bad(errors[0].1.clone()))?;
    Ok(InlineRule::new(rate, algorithm))
}

/// Takes `limit`, and `window` unless the limit is a whole rate. The inner error says why they make no rate; the caller
/// reports it only if all fields are known and of the right type.
fn rate(fields: &mut Fields) -> Result<Result<Rate, String>, InlineError> {
    let limit = fields.take("limit");
    let expected = format!("a whole number from 1 to {LIMIT_MAX}, in digits only");
    match fields.required("limit", limit)? {
        Json::Whole(limit) => Ok(rate_of(limit, &fields.required_text("window")?)),
        Json::Text(rate) => match fields.take("window") {
            None => Ok(parse_rate(&rate).map_err(|text| format!("limit: {text}"))),
            Some(_) if rate.contains('/') => {
                let path = fields.path("window");
                Err(InlineError::Rule(format!(
                    "{path}: cannot be combined with a limit that is a rate; remove it, or write the limit as a number"
                )))
            }
            Some(_) => Err(fields.wrong("limit", &expected, &Json::Text(rate)).into()),
        },
        other => {
            let expected = format!("{expected}, or a rate such as \"60/1m\"");
            Err(fields.wrong("limit", &expected, &other).into())
        }
    }
}

/// The rate of a limit and its window; the error begins with the wrong field.
fn rate_of(limit: u64, window_text: &str) -> Result<Rate, String> {
    let excerpt = excerpt(window_text);
    let window = parse_window(window_text).ok_or_else(|| {
        format!("window: `{excerpt}` is not a window; write a number and ms, s, m, h or d, for example 60s")
    })?;
    Rate::new(limit, window).map_err(|error| match error {
        RateError::Window { .. } => RateError::WindowText { text: excerpt }.to_string(),
        other => other.to_string(),
    })
}

/// Reads `LIMIT/WINDOW`. The error names no field: the caller knows whether it is `limit` or one of `limits`, and the
/// window is a part of it.
pub(crate) fn parse_rate(text: &str) -> Result<Rate, String> {
    text.parse().map_err(|error: RateError| {
        let text = error.to_string();
        match text.strip_prefix("window: ") {
            Some(of_window) => format!("the window {of_window}"),
            None => text.strip_prefix("limit: ").unwrap_or(&text).to_owned(),
        }
    })
}
