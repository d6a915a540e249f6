//! The small-service form: `rate-limiter: { use-algo: sliding-window-algo, window-size: 60, max-requests: 5 }`.
//!
//! It defines rule `default`. Small services use these names and can keep their file when they migrate.

use std::time::Duration;

use serde_saphyr::Spanned;
use slidegate::rate::LIMIT_MAX;
use slidegate::ruleset::Overrides;
use slidegate::{Algorithm, Rate, RateError, Rule};

use super::finding::Findings;
use super::node::Node;
use super::rule::FileRule;
use super::rule_values::{on_store_error, whole, word};
use super::section::Section;
use crate::text::{did_you_mean, excerpt};

/// The rule that the form defines and the small-service route charges.
pub(crate) const DEFAULT_RULE: &str = "default";

/// The last one, which small services do not have, is spelt as in a rule.
const FIELDS: [&str; 4] = ["use-algo", "window-size", "max-requests", "on_store_error"];

/// Algorithm names of small services, without the optional suffix `-algo`.
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

/// Accepts names of the table and slidegate's own names.
fn algorithm(text: &str) -> Result<Algorithm, String> {
    let name = text.replace('_', "-").to_ascii_lowercase();
    let name = name.strip_suffix("-algo").or_else(|| name.strip_suffix("-algorithm")).unwrap_or(&name);
    let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm);
    found.or_else(|| name.parse().ok()).ok_or_else(|| {
        let known: Vec<String> = NAMES.iter().map(|(known, _)| format!("{known}-algo")).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let ours = Algorithm::ALL.map(Algorithm::name);
        // The nearest name, with or without the suffix.
        let bare = did_you_mean(name, &ours);
        let remedy = if bare.starts_with("did you mean") { bare } else { did_you_mean(text, &known) };
        format!("`{}` is unknown; {remedy}", excerpt(text))
    })
}

/// Reads the form; adds all its mistakes to `findings`.
pub(super) fn read(name: &Spanned<String>, node: &Node, findings: &mut Findings) -> Option<FileRule> {
    let expected = ("fields", "{ window-size: 60, max-requests: 5 }");
    let mut form = Section::open("rate-limiter: ".to_owned(), node, expected, findings)?;
    for (name, _) in form.fields {
        form.check_name(name, &FIELDS, &[], "is not a field here");
    }
    let named = form.read("use-algo", |node| word(node).and_then(algorithm));
    let policy = form.read("on_store_error", on_store_error);
    let (seconds, units) = (form.read("window-size", whole), form.read("max-requests", whole));
    for (field, meaning) in [("window-size", "seconds"), ("max-requests", "requests per window")] {
        if form.node(field).is_none() {
            let text = format!("{field}: is missing; write the number of {meaning}");
            form.mistake(name.referenced, &text);
        }
    }
    let (seconds, units) = (seconds?, units?);
    let rate = Rate::new(units, Duration::from_secs(seconds));
    let rate = rate.map_err(|error| {
        let (field, text) = match error {
            RateError::Limit { .. } => ("max-requests", format!("{units} is outside 1 to {LIMIT_MAX}")),
            _ => ("window-size", format!("{seconds} is outside 1 to 34560000 seconds")),
        };
        form.read::<()>(field, |_| Err(format!("{text}; choose another")));
    });
    let rule = Rule::builder(DEFAULT_RULE).limit(rate.ok()?).algorithm(named.unwrap_or_default());
    let rule = rule.on_store_error(policy.unwrap_or_default()).build().ok();
    let rule = rule.filter(|_| form.has_no_mistakes())?;
    let (overrides, at) = (Overrides::default(), name.referenced);
    Some(FileRule { rule, overrides, at, has_policy: policy.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn algorithm_names_of_small_services_are_accepted() {
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
