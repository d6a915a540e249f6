//! Parsers for the values of flags. Errors name the flag and the remedy.

use std::time::Duration;

use slidegate::rate::{WINDOW_MAX, parse_window};
use slidegate::{Key, KeyError, Rate};

use crate::text::excerpt;

/// The value of `--also`: another limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Also {
    pub(super) key: String,
    pub(super) rate: Rate,
    /// `--cost` if `None`.
    pub(super) cost: Option<u64>,
}

/// Parses a key.
pub(super) fn key(text: &str) -> Result<String, KeyError> {
    Key::new(text).map(|key| key.as_str().to_owned())
}

/// Parses a tag.
pub(super) fn tag(text: &str) -> Result<String, KeyError> {
    Key::check_tag(text).map(|()| text.to_owned())
}

/// Parses `KEY=RATE` or `KEY=RATE@COST`. Rates contain no `=`, so keys may.
pub(super) fn also(text: &str) -> Result<Also, String> {
    let (name, rate) = text.rsplit_once('=').ok_or_else(|| {
        format!("also: `{}` is not KEY=RATE; write for example yt:search:key1=500/10m", excerpt(text))
    })?;
    let (rate, cost) = match rate.split_once('@') {
        Some((rate, cost)) => (rate, Some(cost)),
        None => (rate, None),
    };
    let wrong = |error: String| format!("also: {error}");
    Ok(Also {
        key: key(name).map_err(|error| wrong(error.to_string()))?,
        rate: rate.parse().map_err(|error: slidegate::RateError| wrong(error.to_string()))?,
        cost: cost.map(self::cost).transpose().map_err(wrong)?,
    })
}

/// Parses a number of units.
pub(super) fn cost(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| format!("cost: `{}` is not a number of units; write digits only", excerpt(text)))
}

/// Parses the value of `--wait`.
pub(in crate::cli) fn wait(text: &str) -> Result<Duration, String> {
    let number = text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let wait = parse_window(text).filter(|_| number).ok_or_else(|| {
        format!(
            "wait: `{}` is not a duration; write a number and ms, s, m, h or d, for example 30s",
            excerpt(text)
        )
    })?;
    if wait > WINDOW_MAX {
        return Err(format!("wait: `{}` is more than 400d; wait for less", excerpt(text)));
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn also_has_a_key_a_rate_and_an_optional_cost() {
        let limit = |key: &str, rate: &str, cost| Also { key: key.into(), rate: rate.parse().unwrap(), cost };
        assert_eq!(also("yt:search=500/10m"), Ok(limit("yt:search", "500/10m", None)));
        assert_eq!(also("a=b=5/m@2"), Ok(limit("a=b", "5/m", Some(2))));
        assert_eq!(also("me@home=5/m"), Ok(limit("me@home", "5/m", None)));
        for (text, start) in [
            ("500/10m", "also: `500/10m` is not KEY=RATE"),
            ("a=banana", "also: limit: `banana` is not a rate"),
            ("=5/m", "also: key: is empty"),
            ("a=5/0s", "also: window: "),
            ("a=5/m@x", "also: cost: `x` is not a number"),
        ] {
            assert!(also(text).unwrap_err().starts_with(start), "{text}");
        }
    }

    #[test]
    fn costs_and_waits_are_whole_numbers() {
        assert_eq!(
            (cost("5"), wait("30s"), wait("0s")),
            (Ok(5), Ok(Duration::from_secs(30)), Ok(Duration::ZERO))
        );
        for text in ["", "+5", "-5", "5.0", "x", "99999999999999999999"] {
            assert!(cost(text).is_err(), "{text}");
        }
        for text in ["", "s", "30", "-1s", "1.5s", "401d"] {
            assert!(wait(text).is_err(), "{text}");
        }
    }
}
