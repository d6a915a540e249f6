//! Query parameters. A parameter that means nothing to its route is refused: it is a mistake of the caller, who expects
//! it to have an effect.

use super::problem::Problem;
use crate::text::{did_you_mean, excerpt};

/// The value of a query parameter; empty if it has no value.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    pairs(query).find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Refuses parameters other than `known`.
pub(super) fn check(query: &str, known: &[&str]) -> Result<(), Problem> {
    let Some((name, _)) = pairs(query).find(|(name, _)| !known.contains(name)) else {
        return Ok(());
    };
    let remedy = if known.is_empty() { "remove it".to_owned() } else { did_you_mean(name, known) };
    let text = format!("query: the parameter `{}` means nothing to this path; {remedy}", excerpt(name));
    Err(Problem::malformed(&text))
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let given = query.split('&').filter(|pair| !pair.is_empty());
    given.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_may_have_no_value() {
        assert_eq!(parameter("a=1&n=20&verbose", "n"), Some("20"));
        assert_eq!(parameter("a=1&verbose", "verbose"), Some(""));
        assert_eq!(parameter("nn=1", "n"), None);
        assert_eq!(parameter("", "n"), None);
    }

    #[test]
    fn parameters_that_mean_nothing_are_named() {
        for (query, known) in [("", &[][..]), ("n=20", &["n"]), ("&n=20&", &["n"]), ("verbose", &["verbose"])]
        {
            assert_eq!(check(query, known), Ok(()), "{query}");
        }
        for (query, known, words) in [
            ("cost=5", &[][..], "`cost` means nothing to this path"),
            ("n=20&limit=5", &["n"], "`limit` means nothing"),
            ("verbos", &["verbose"], "did you mean `verbose`?"),
            ("=5", &[], "`` means nothing"),
        ] {
            let problem = format!("{:?}", check(query, known).unwrap_err());
            assert!(problem.contains(words), "{query}: {problem}");
        }
    }
}
