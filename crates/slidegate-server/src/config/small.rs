//! The small-service form: `rate-limiter: { use-algo: sliding-window-algo, window-size: 60, max-requests: 5 }`.
//!
//! It means rule `default`. Services that are written first use these names, and move here by keeping their file.

use std::time::Duration;

use serde_saphyr::Spanned;
use slidegate::rate::LIMIT_MAX;
use slidegate::{Algorithm, Rate, RateError, Rule};

use super::mistake::Findings;
use super::node::Node;
use super::section::Section;
use super::values::{whole, word};
use crate::text::{did_you_mean, excerpt};

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
        format!("`{}` is unknown; {remedy}", excerpt(text))
    })
}

/// Reads the form, or says everything that is wrong with it.
pub(super) fn read(name: &Spanned<String>, node: &Node, found: &mut Findings) -> Option<Rule> {
    let expected = ("fields", "{ window-size: 60, max-requests: 5 }");
    let mut form = Section::open("rate-limiter: ".to_owned(), node, expected, found)?;
    for (name, _) in form.fields {
        form.check_name(name, &FIELDS, &[], "is not a field here");
    }
    let named = form.read("use-algo", |node| word(node).and_then(algorithm));
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
    rule.build().ok().filter(|_| form.is_good())
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
