//! The small-service form: `rate-limiter: { use-algo: sliding-window-algo, window-size: 60, max-requests: 5 }`.
//!
//! It means rule `default`. Services that are written first use these names, and move here by keeping their file.

use std::time::Duration;

use serde_saphyr::{Location, Spanned};
use slidegate::{Algorithm, Rate, Rule};

use super::mistake::Mistake;
use super::node::{Node, Value};
use super::scalar::{whole, word};
use crate::text::{did_you_mean, shown};

/// The rule that the form means.
pub(super) const DEFAULT_RULE: &str = "default";

const FIELDS: [&str; 3] = ["use-algo", "window-size", "max-requests"];

/// Names that small services use, and ours for them. `-algo` at the end may be left out.
const NAMES: [(&str, Algorithm); 10] = [
    ("sliding-window", Algorithm::SlidingLog),
    ("sliding-window-log", Algorithm::SlidingLog),
    ("sliding-log", Algorithm::SlidingLog),
    ("sliding-window-counter", Algorithm::SlidingCounter),
    ("sliding-counter", Algorithm::SlidingCounter),
    ("fixed-window", Algorithm::FixedWindow),
    ("fixed-window-counter", Algorithm::FixedWindow),
    ("token-bucket", Algorithm::Gcra),
    ("leaky-bucket", Algorithm::Gcra),
    ("gcra", Algorithm::Gcra),
];

/// Our own names are good too, where they are not in the table.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    let name = text.replace('_', "-").to_ascii_lowercase();
    let name = name.strip_suffix("-algo").or_else(|| name.strip_suffix("-algorithm")).unwrap_or(&name);
    let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm);
    found.or_else(|| name.parse().ok()).ok_or_else(|| {
        let known: Vec<String> = NAMES.iter().map(|(known, _)| format!("{known}-algo")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let ours = Algorithm::ALL.map(Algorithm::name);
        // The nearest among names with and without the ending.
        let bare = did_you_mean(name, &ours);
        let remedy = if bare.starts_with("did you mean") { bare } else { did_you_mean(text, &known) };
        format!("`{}` is unknown; {remedy}", shown(text))
    })
}

/// Reads the form, or says everything that is wrong with it.
pub(super) fn read(name: &Spanned<String>, node: &Node, mistakes: &mut Vec<Mistake>) -> Option<Rule> {
    let before = mistakes.len();
    let mut wrong =
        |at: Location, text: &str| mistakes.push(Mistake::at(at, &format!("rate-limiter: {text}")));
    let Value::Map(fields) = &node.value else {
        let found = node.value.kind();
        wrong(
            node.referenced,
            &format!("expected fields, found {found}; write {{ window-size: 60, max-requests: 5 }}"),
        );
        return None;
    };
    let (mut algorithm_named, mut window_s, mut limit) = (Algorithm::default(), None, None);
    for (field, node) in fields {
        let field_name = field.value.as_str();
        let read = match field_name {
            "use-algo" => word(node).and_then(algorithm).map(|named| algorithm_named = named),
            "window-size" => whole(node).map(|seconds| window_s = Some((seconds, node.referenced))),
            "max-requests" => whole(node).map(|units| limit = Some((units, node.referenced))),
            other => {
                wrong(
                    field.referenced,
                    &format!("{}: is not a field here; {}", shown(other), did_you_mean(other, &FIELDS)),
                );
                Ok(())
            }
        };
        if let Err(text) = read {
            wrong(node.referenced, &format!("{field_name}: {text}"));
        }
    }
    for (field, meaning) in [("window-size", "seconds"), ("max-requests", "requests per window")] {
        if !fields.iter().any(|(name, _)| name.value == field) {
            wrong(name.referenced, &format!("{field}: is missing; write the number of {meaning}"));
        }
    }
    let ((seconds, seconds_at), (units, units_at)) = (window_s?, limit?);
    let rate = match Rate::new(units, Duration::from_secs(seconds)) {
        Ok(rate) => rate,
        Err(slidegate::RateError::Limit { .. }) => {
            wrong(
                units_at,
                &format!(
                    "max-requests: {units} is outside 1 to {}; choose another",
                    slidegate::rate::LIMIT_MAX
                ),
            );
            return None;
        }
        Err(_) => {
            wrong(
                seconds_at,
                &format!("window-size: {seconds} is outside 1 to 34560000 seconds; choose another"),
            );
            return None;
        }
    };
    if mistakes.len() > before {
        return None;
    }
    Rule::builder(DEFAULT_RULE).limit(rate).algorithm(algorithm_named).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_small_services_mean_ours() {
        for (text, name) in [
            ("sliding-window-algo", "sliding-log"),
            ("sliding_window_algo", "sliding-log"),
            ("SlidingWindow", ""),
            ("sliding-window-counter-algo", "sliding-counter"),
            ("fixed-window-algo", "fixed-window"),
            ("token-bucket-algo", "gcra"),
            ("Leaky-Bucket", "gcra"),
            ("compact-log", "compact-log"),
            ("sliding-buckets", "sliding-buckets"),
        ] {
            assert_eq!(algorithm(text).map_or("", Algorithm::name), name, "{text}");
        }
        assert_eq!(
            algorithm("fixd-window-algo"),
            Err("`fixd-window-algo` is unknown; did you mean `fixed-window`?".into())
        );
        assert_eq!(
            algorithm("token-bukcet-algo"),
            Err("`token-bukcet-algo` is unknown; did you mean `token-bucket-algo`?".into())
        );
    }
}
