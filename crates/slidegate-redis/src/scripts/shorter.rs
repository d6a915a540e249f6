//! The short scripts: one charge of one limit of one algorithm, made from the fast path of the general scripts.

use std::sync::LazyLock;

use super::Script;
use super::joining::{definitions, shortened, with_literals};

/// The two verbs: name, whether it charges, and what it does.
const VERBS: [(&str, &str, &str); 2] =
    [("check", "true", "decides, and charges what passes."), ("peek", "false", "decides without charging.")];

/// An algorithm: its name, its domain and the form of a charge, and its part of the fast path.
struct ShortAlgorithm {
    name: &'static str,
    domain: &'static str,
    fast: &'static str,
}

macro_rules! algorithms {
    ($($name:literal),+) => {
        [$(ShortAlgorithm {
            name: $name,
            domain: include_str!(concat!("../../scripts/short/", $name, ".lua")),
            fast: include_str!(concat!("../../scripts/fast-", $name, ".lua")),
        }),+]
    };
}

const ALGORITHMS: [ShortAlgorithm; 6] =
    algorithms!("sliding-log", "compact-log", "sliding-buckets", "sliding-counter", "fixed-window", "gcra");

static SHORT: LazyLock<Vec<Script>> = LazyLock::new(|| {
    let verbs = VERBS.iter();
    verbs.flat_map(|verb| ALGORITHMS.iter().map(|algorithm| script(*verb, algorithm))).collect()
});

/// The short script of `check` or `peek` for an algorithm: at most 150 lines, for one charge of one limit.
///
/// It takes the `KEYS` and `ARGV` of the general script and answers as that does, on the same states, in the domain that
/// its contract describes: small states of the same geometry. Anywhere else it writes nothing and replies with an error
/// that begins with `SLIDEGATE general`: call the general script then.
#[must_use]
pub fn short(verb: &str, algorithm: &str) -> Option<&'static Script> {
    let verb = VERBS.iter().position(|(name, ..)| *name == verb)?;
    let algorithm = ALGORITHMS.iter().position(|known| known.name == algorithm)?;
    SHORT.get(verb * ALGORITHMS.len() + algorithm)
}

fn script((verb, charging, does): (&'static str, &str, &str), algorithm: &ShortAlgorithm) -> Script {
    let mut constants = definitions(include_str!("../../scripts/constants.lua"));
    let own = definitions(algorithm.domain);
    let form = own.get("FORM").expect("the form is a constant").trim_matches('\'').to_owned();
    constants.extend(own);
    let domain = algorithm.domain.lines().filter(|line| line.starts_with("--"));
    let contract = include_str!("../../scripts/contract/short.lua")
        .replace("$VERB", verb)
        .replace("$ALGORITHM", algorithm.name)
        .replace("$FORM", &form)
        .replace("$DOES", does);
    let mut text = contract;
    for line in domain {
        text.push_str(line);
        text.push('\n');
    }
    let parts = [
        format!("local charging = {charging}\n"),
        include_str!("../../scripts/short/begin.lua").to_owned(),
        shortened(algorithm.fast),
        shortened(include_str!("../../scripts/fast-write.lua")),
        shortened(include_str!("../../scripts/fast-reply-text.lua")),
        "return general\n".to_owned(),
    ];
    text.extend(parts);
    Script::new(verb, with_literals(&text, constants).leak())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES_MAX: usize = 150;

    #[test]
    fn short_scripts_are_short_and_begin_with_their_contract() {
        for (verb, ..) in VERBS {
            for ShortAlgorithm { name, .. } in &ALGORITHMS {
                let script = short(verb, name).expect("every algorithm has one");
                let lines = script.text.lines().count();
                assert!(lines <= LINES_MAX, "{verb} {name}: {lines} lines");
                let first = format!("-- slidegate, script `{verb}` for `{name}` and one limit: ");
                assert!(script.text.starts_with(&first), "{}", script.text);
                for left_over in ["$VERB", "$ALGORITHM", "$FORM", "$DOES", "general only", "capacity"] {
                    assert!(!script.text.contains(left_over), "{verb} {name}: {left_over}");
                }
            }
        }
        assert!(short("refund", "gcra").is_none() && short("check", "sorted-set").is_none());
    }

    #[test]
    fn no_constant_is_left_in_a_short_script() {
        for ShortAlgorithm { name, domain, fast } in &ALGORITHMS {
            let script = short("check", name).expect("every algorithm has one");
            let constants = [include_str!("../../scripts/constants.lua"), domain, fast].map(definitions);
            let code = script.text.lines().map(|line| line.split("--").next().unwrap_or_default());
            let code = code.collect::<Vec<_>>().join("\n");
            let mut words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let left = words.find(|word| constants.iter().any(|known| known.contains_key(word)));
            assert_eq!(left, None, "{name}");
        }
    }
}
