//! What a rule means for keys of their own: exact keys first, then patterns in the order of the file.

use std::collections::HashMap;

use slidegate::Rule;

use super::pattern::Pattern;

/// Most patterns of one rule: every key without an override of its own is held against all of them.
pub(crate) const PATTERNS_MAX: usize = 100;

/// What stands in the place of a rule's own limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Override {
    /// The same rule with other limits.
    Limited(Rule),
    /// Always passes, and is charged nowhere.
    Unlimited,
    /// Never passes.
    Blocked,
}

/// The overrides of one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    keys: HashMap<String, Override>,
    patterns: Vec<(String, Pattern, Override)>,
}

impl Overrides {
    /// Adds one for what was written: a key, or a pattern that comes after those before it.
    pub(crate) fn add(&mut self, written: &str, meant: Override) -> Result<(), OverrideError> {
        match Pattern::parse(written) {
            Ok(_) if self.patterns.len() == PATTERNS_MAX => return Err(OverrideError::TooMany),
            Ok(_) if self.patterns.iter().any(|(_, earlier, _)| earlier.matches_all()) => {
                return Err(OverrideError::Unreachable);
            }
            Ok(pattern) => self.patterns.push((written.to_owned(), pattern, meant)),
            Err(key) => {
                slidegate::Key::new(&key).map_err(|error| OverrideError::Key(error.to_string()))?;
                if self.keys.insert(key, meant).is_some() {
                    return Err(OverrideError::Twice);
                }
            }
        }
        Ok(())
    }

    /// The one for a key, if there is one.
    #[inline]
    pub(crate) fn of(&self, key: &str) -> Option<&Override> {
        self.find(key).map(|(_, meant)| meant)
    }

    /// The same with the key or the pattern that it is for.
    #[inline]
    pub(crate) fn find(&self, key: &str) -> Option<(&str, &Override)> {
        if self.keys.is_empty() && self.patterns.is_empty() {
            return None;
        }
        let exact = self.keys.get_key_value(key).map(|(key, meant)| (key.as_str(), meant));
        exact.or_else(|| {
            let mut patterns = self.patterns.iter();
            patterns
                .find(|(_, pattern, _)| pattern.matches(key))
                .map(|(written, _, meant)| (written.as_str(), meant))
        })
    }

    /// All of them as they were written: keys by name, then patterns in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Override)> {
        let mut keys: Vec<_> = self.keys.iter().map(|(key, meant)| (key.as_str(), meant)).collect();
        keys.sort_unstable_by_key(|(key, _)| *key);
        keys.into_iter().chain(self.patterns.iter().map(|(written, _, meant)| (written.as_str(), meant)))
    }
}

/// Why an override cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OverrideError {
    #[error("{0}")]
    Key(String),
    #[error("stands for a key that is given already; keep one of them")]
    Twice,
    #[error("comes after a pattern that every key matches; move it up, or remove it")]
    Unreachable,
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
        assert_eq!(overrides.of("ci-7"), Some(&Override::Limited(fast)));
        assert_eq!(overrides.of("ci-9"), Some(&Override::Unlimited), "the first pattern wins");
        assert_eq!(overrides.of("x-9"), Some(&Override::Blocked));
        assert_eq!(overrides.of("alice"), None);
        assert_eq!(Overrides::default().of("alice"), None);
        let written: Vec<&str> = overrides.iter().map(|(written, _)| written).collect();
        assert_eq!(written, ["ci-7", "ci-*", "*-9"]);
    }

    #[test]
    fn what_could_never_be_met_is_refused() {
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
}
