//! Reads the values of a rule's fields. Errors do not name the field; the caller adds it.

use slidegate::Rate;
use slidegate::rule::{AtBudget, Decimal, DecimalError, OnStoreError, SHARDS_MAX, TakeOver};

use super::node::{Node, YamlValue};
use crate::rules::parse_rate;
use crate::text::{did_you_mean, excerpt};

const POLICIES: &str = "choose deny, allow or { local: 0.25 }";

pub(super) fn word(node: &Node) -> Result<&str, String> {
    match &node.value {
        YamlValue::Text(text) => Ok(text),
        other => Err(format!(
            "expected a name, found {}; write the name without brackets or as text",
            other.kind()
        )),
    }
}

pub(super) fn whole(node: &Node) -> Result<u64, String> {
    match node.value {
        YamlValue::Whole(number) => Ok(number),
        ref other => Err(format!("expected a whole number, found {}; write digits only", other.kind())),
    }
}

pub(super) fn boolean(node: &Node) -> Result<bool, String> {
    match node.value {
        YamlValue::Bool(value) => Ok(value),
        ref other => Err(format!("expected true or false, found {}; write one of them", other.kind())),
    }
}

/// Reads `LIMIT/WINDOW`.
pub(super) fn rate(node: &Node) -> Result<Rate, String> {
    match &node.value {
        YamlValue::Text(text) => parse_rate(text),
        other => Err(format!("expected LIMIT/WINDOW, found {}; write for example 60/1m", other.kind())),
    }
}

/// Reads a decimal, from a number or a text.
pub(super) fn decimal(node: &Node) -> Result<Decimal, String> {
    match &node.value {
        // The shortest text of a number is exact for every decimal that a rule can hold.
        YamlValue::Whole(number) => number.to_string().parse(),
        YamlValue::Number(number) => number.decimal.parse(),
        YamlValue::Text(text) => text.parse(),
        other => {
            let found = other.kind();
            return Err(format!("expected a decimal from 0 to 1, found {found}; write for example 0.05"));
        }
    }
    .map_err(|error: DecimalError| error.to_string())
}

/// Reads `deny`, `allow` or `{ local: 0.25 }`.
pub(super) fn on_store_error(node: &Node) -> Result<OnStoreError, String> {
    match &node.value {
        YamlValue::Text(text) if text == "deny" => Ok(OnStoreError::Deny),
        YamlValue::Text(text) if text == "allow" => Ok(OnStoreError::Allow),
        YamlValue::Map(fields) => {
            if let Some((unknown, _)) = fields.iter().find(|(name, _)| name.value != "local") {
                return Err(format!("{}: is not a field here; {POLICIES}", excerpt(&unknown.value)));
            }
            let Some((_, share)) = fields.first() else {
                return Err(format!("local: is missing; {POLICIES}"));
            };
            let share = decimal(share).map_err(|error| format!("local: {error}"))?;
            if share == Decimal::ZERO {
                return Err("local: 0 would admit nothing; write deny, or a share above 0".to_owned());
            }
            Ok(OnStoreError::Local(share))
        }
        other => Err(format!("{} is not a policy; {POLICIES}", other.kind())),
    }
}

/// Reads `refuse` or `evict-oldest`.
pub(super) fn at_budget(node: &Node) -> Result<AtBudget, String> {
    match word(node)? {
        "refuse" => Ok(AtBudget::Refuse),
        "evict-oldest" => Ok(AtBudget::EvictOldest),
        other => {
            let remedy = did_you_mean(other, &["refuse", "evict-oldest"]);
            Err(format!("`{}` is unknown; {remedy}", excerpt(other)))
        }
    }
}

/// Reads `ms` or `s`.
pub(super) fn take_over(node: &Node) -> Result<TakeOver, String> {
    let name = word(node)?;
    TakeOver::named(name).ok_or_else(|| {
        format!("`{}` is unknown; write ms or s, the unit of the times in the sets", excerpt(name))
    })
}

/// Reads a number of shards.
pub(super) fn shards(node: &Node) -> Result<u16, String> {
    let number = whole(node)?;
    let shards = u16::try_from(number).ok().filter(|shards| (1..=SHARDS_MAX).contains(shards));
    shards.ok_or_else(|| format!("{number} given; give 1 to {SHARDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    #[test]
    fn decimals_are_exact_whether_number_or_text() {
        for text in ["0.05", "\"0.05\"", "5e-2", "0.050"] {
            assert_eq!(decimal(&parse(text).unwrap()), Ok("0.05".parse().unwrap()), "{text}");
        }
        assert_eq!(decimal(&parse("0.000001").unwrap()), Ok("0.000001".parse().unwrap()));
        assert_eq!(decimal(&parse("0").unwrap()), Ok(Decimal::ZERO));
        assert_eq!(decimal(&parse("1").unwrap()), Ok(Decimal::ONE));
        for text in ["1.5", "-0.1", "0.0000001", ".nan", "5 %", "true", "[0.1]"] {
            assert!(decimal(&parse(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn outage_policies_are_deny_allow_and_local() {
        let read = |text: &str| on_store_error(&parse(text).unwrap());
        assert_eq!(read("deny"), Ok(OnStoreError::Deny));
        assert_eq!(read("allow"), Ok(OnStoreError::Allow));
        assert_eq!(read("{ local: 0.25 }"), Ok(OnStoreError::Local("0.25".parse().unwrap())));
        assert!(read("{ local: 0 }").unwrap_err().starts_with("local: 0 would admit nothing"));
        assert!(read("{ local: 2 }").unwrap_err().starts_with("local: `2` is not a decimal"));
        for (text, start) in [
            ("open", "`open` is not a policy; "),
            ("true", "`true` is not a policy; "),
            ("[deny]", "a list is not a policy; "),
            ("{}", "local: is missing; "),
            ("{ loc: 0.2 }", "loc: is not a field here; "),
            ("{ local: 0.1, remote: 0.2 }", "remote: is not a field here; "),
        ] {
            assert_eq!(read(text), Err(format!("{start}choose deny, allow or {{ local: 0.25 }}")));
        }
    }

    #[test]
    fn the_unit_of_what_is_taken_over_is_ms_or_s() {
        let read = |text: &str| take_over(&parse(text).unwrap());
        assert_eq!((read("ms"), read("s")), (Ok(TakeOver::Milliseconds), Ok(TakeOver::Seconds)));
        assert!(read("us").unwrap_err().starts_with("`us` is unknown; write ms or s"));
        assert!(read("true").unwrap_err().starts_with("expected a name, found `true`"));
    }

    #[test]
    fn at_budget_is_refuse_or_evict_oldest() {
        let read = |text: &str| at_budget(&parse(text).unwrap());
        assert_eq!(read("refuse"), Ok(AtBudget::Refuse));
        assert_eq!(read("evict-oldest"), Ok(AtBudget::EvictOldest));
        for (text, words) in [
            ("evict_oldest", "`evict_oldest` is unknown; did you mean `evict-oldest`?"),
            ("refused", "`refused` is unknown; did you mean `refuse`?"),
            ("explode", "`explode` is unknown; choose from: refuse, evict-oldest"),
            ("true", "expected a name, found `true`; write the name without brackets or as text"),
        ] {
            assert_eq!(read(text), Err(words.to_owned()));
        }
    }
}
