//! Overrides of a rule for single keys: exact keys first, then patterns in their order.

use std::collections::HashMap;

use thiserror::Error;

use crate::key::{Key, KeyError};
use crate::rule::Rule;

/// Most patterns of one rule: every key without an exact override is matched against all of them.
pub const PATTERNS_MAX: usize = 100;

/// What replaces a rule's own limits for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Override {
    /// The same rule, of the same name, with other limits.
    Limited(Rule),
    /// Always passes, and is charged nowhere.
    Unlimited,
    /// Never passes.
    Blocked,
}

/// The overrides of one rule.
///
/// A text with a `*` is a pattern, and `*` stands for any text; `\\*` is a star. An exact key comes before all
/// patterns, and of the patterns the first that matches counts.
///
/// ```
/// use slidegate::ruleset::{Override, Overrides};
///
/// let mut overrides = Overrides::default();
/// overrides.add("ci-*", Override::Unlimited)?;
/// overrides.add("ci-7", Override::Blocked)?;
/// assert_eq!(overrides.get("ci-1"), Some(&Override::Unlimited));
/// assert_eq!(overrides.get("ci-7"), Some(&Override::Blocked));
/// assert_eq!(overrides.get("alice"), None);
/// # Ok::<(), slidegate::ruleset::OverrideError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    keys: HashMap<String, Override>,
    patterns: Vec<(String, Pattern, Override)>,
}

impl Overrides {
    /// Adds an override for a key, or for a pattern, after the existing patterns.
    pub fn add(&mut self, written: &str, meant: Override) -> Result<(), OverrideError> {
        match Pattern::parse(written) {
            Ok(_) if self.patterns.len() == PATTERNS_MAX => return Err(OverrideError::TooMany),
            Ok(_) if self.patterns.iter().any(|(_, earlier, _)| earlier.matches_all()) => {
                return Err(OverrideError::Unreachable);
            }
            Ok(pattern) => self.patterns.push((written.to_owned(), pattern, meant)),
            Err(key) => {
                Key::new(&key)?;
                if self.keys.insert(key, meant).is_some() {
                    return Err(OverrideError::Twice);
                }
            }
        }
        Ok(())
    }

    /// The override of a key, if it has one.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Override> {
        self.find(key).map(|(_, meant)| meant)
    }

    /// The override of a key, and the exact key or pattern as it was written.
    #[must_use]
    #[inline]
    pub fn find(&self, key: &str) -> Option<(&str, &Override)> {
        if let Some((key, meant)) = self.keys.get_key_value(key) {
            return Some((key, meant));
        }
        let (written, _, meant) = self.patterns.iter().find(|(_, pattern, _)| pattern.matches(key))?;
        Some((written, meant))
    }

    /// Whether there are no overrides.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.patterns.is_empty()
    }

    /// All overrides as they were written: keys by name, then patterns in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Override)> {
        let mut keys: Vec<_> = self.keys.iter().map(|(key, meant)| (key.as_str(), meant)).collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        keys.into_iter().chain(self.patterns.iter().map(|(written, _, meant)| (written.as_str(), meant)))
    }
}

/// A glob pattern, as the texts between its stars. `*` matches any text, including none, `\*` a star, and everything
/// else itself.
///
/// `*` is the only wildcard, so the first occurrence of a piece is as good as any later one: matching never
/// backtracks, and reads the key at most once per piece.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

impl Pattern {
    /// Parses a pattern; text without a star is an exact key, returned as the error.
    fn parse(text: &str) -> Result<Self, String> {
        let mut pieces: Vec<String> = Vec::new();
        for part in text.split('*') {
            match pieces.last_mut() {
                Some(piece) if piece.ends_with('\\') => {
                    piece.pop();
                    piece.push('*');
                    piece.push_str(part);
                }
                _ => pieces.push(part.to_owned()),
            }
        }
        match <[String; 1]>::try_from(pieces) {
            Ok([key]) => Err(key),
            Err(pieces) => Ok(Self(pieces)),
        }
    }

    /// Whether the pattern matches a key.
    fn matches(&self, key: &str) -> bool {
        let [first, between @ .., last] = self.0.as_slice() else { return false };
        let Some(mut rest) = key.strip_prefix(first.as_str()) else { return false };
        for piece in between {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }

    /// Whether the pattern matches every key.
    fn matches_all(&self) -> bool {
        self.0.iter().all(String::is_empty)
    }
}

/// Why an override cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OverrideError {
    /// It is neither a pattern nor a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key has an override already.
    #[error("stands for a key that is given already; keep one of them")]
    Twice,
    /// A pattern before it matches every key.
    #[error("comes after a pattern that every key matches; move it up, or remove it")]
    Unreachable,
    /// There are [`PATTERNS_MAX`] patterns already.
    #[error("is one pattern too many; a rule has at most {PATTERNS_MAX}, list keys or join patterns")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_keys_come_first_then_patterns_in_their_order() {
        let mut overrides = Overrides::default();
        let fast = Rule::builder("api").limit("600/1m".parse().unwrap()).build().unwrap();
        overrides.add("ci-*", Override::Unlimited).unwrap();
        overrides.add("*-9", Override::Blocked).unwrap();
        overrides.add("ci-7", Override::Limited(fast.clone())).unwrap();
        assert_eq!(overrides.get("ci-7"), Some(&Override::Limited(fast)));
        assert_eq!(overrides.get("ci-9"), Some(&Override::Unlimited), "the first pattern wins");
        assert_eq!(overrides.get("x-9"), Some(&Override::Blocked));
        assert_eq!(overrides.get("alice"), None);
        assert_eq!(Overrides::default().get("alice"), None);
        let written: Vec<&str> = overrides.iter().map(|(written, _)| written).collect();
        assert_eq!(written, ["ci-7", "ci-*", "*-9"]);
    }

    #[test]
    fn overrides_that_could_never_match_are_rejected() {
        let mut overrides = Overrides::default();
        overrides.add("five*", Override::Blocked).unwrap();
        overrides.add(r"a\*", Override::Blocked).unwrap();
        assert!(matches!(overrides.add("", Override::Blocked), Err(OverrideError::Key(_))));
        assert!(matches!(overrides.add("a\nb", Override::Blocked), Err(OverrideError::Key(_))));
        assert_eq!(overrides.add(r"a\*", Override::Unlimited), Err(OverrideError::Twice));
        overrides.add("*", Override::Blocked).unwrap();
        assert_eq!(overrides.add("b*", Override::Unlimited), Err(OverrideError::Unreachable));
        let mut many = Overrides::default();
        for number in 0..PATTERNS_MAX {
            many.add(&format!("{number}-*"), Override::Unlimited).unwrap();
        }
        assert_eq!(many.add("x-*", Override::Unlimited), Err(OverrideError::TooMany));
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, matching, other) in [
            ("*", &["", "a", "a*b"][..], &[][..]),
            ("ci-*", &["ci-", "ci-1", "ci-ci-"], &["ci", "xci-1", "Ci-1"]),
            (
                "*.internal",
                &[".internal", "a.internal", "a.internal.internal"],
                &["internal", "a.internal.x"],
            ),
            ("a*b*c", &["abc", "a-b-c", "abbcc", "aXbcYbc"], &["ab", "acb", "abcx", "bc"]),
            ("a**c", &["ac", "abc"], &["a", "c"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("*ab*ab*", &["abab", "xabyabz"], &["ab", "aab"]),
            (r"a\**", &["a*", "a*b"], &["ab", r"a\*"]),
            (r"CORP\*\*", &[], &["CORP"]),
            (r"CORP\b*", &[r"CORP\bob"], &["CORPbob"]),
            ("kä*e", &["käse", "käe"], &["kase"]),
        ] {
            let Ok(pattern) = Pattern::parse(pattern) else {
                assert!(matching.is_empty(), "{pattern} is a pattern");
                continue;
            };
            assert!(matching.iter().all(|key| pattern.matches(key)), "{pattern:?} {matching:?}");
            assert!(!other.iter().any(|key| pattern.matches(key)), "{pattern:?} {other:?}");
        }
    }

    #[test]
    fn a_text_without_a_star_is_a_key() {
        assert_eq!(Pattern::parse("alice"), Err("alice".to_owned()));
        assert_eq!(Pattern::parse(r"CORP\bob"), Err(r"CORP\bob".to_owned()));
        assert_eq!(Pattern::parse(r"five\*"), Err("five*".to_owned()));
        assert!(Pattern::parse("**").unwrap().matches_all() && !Pattern::parse("a*").unwrap().matches_all());
    }

    /// A matcher that backtracks takes exponential time for this pattern.
    #[test]
    fn matching_does_not_backtrack() {
        let pattern = Pattern::parse(&"a*".repeat(128)).unwrap();
        let ending = Pattern::parse(&format!("{}b", "a*".repeat(128))).unwrap();
        let key = "a".repeat(512);
        assert!((0..10_000).all(|_| pattern.matches(&key) && !ending.matches(&key)));
    }
}
