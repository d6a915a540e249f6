//! Patterns of keys: `ci-*`.

/// Keys of one shape. `*` stands for any text, also for none; everything else for itself, and `\*` for a star.
///
/// There is nothing but stars, so the first place where a piece fits is as good as any later one: a match never
/// goes back, and costs no more than reading the key once per piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What a key begins with.
    first: String,
    /// What follows, in this order, anywhere.
    between: Vec<String>,
    /// What a key ends with.
    last: String,
}

impl Pattern {
    /// Reads a pattern; a text without a star is none, and is given back as the key that it stands for.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = pieces(text);
        let last = pieces.pop().unwrap_or_default();
        if pieces.is_empty() {
            return Err(last);
        }
        let first = pieces.remove(0);
        // Two stars in a row are one.
        let between = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        Ok(Self { first, between, last })
    }

    /// Whether a key is of this shape.
    pub(super) fn matches(&self, key: &str) -> bool {
        let Some(mut rest) = key.strip_prefix(self.first.as_str()) else { return false };
        for piece in &self.between {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(self.last.as_str())
    }

    /// Whether every key is of this shape.
    pub(super) fn matches_all(&self) -> bool {
        self.first.is_empty() && self.between.is_empty() && self.last.is_empty()
    }
}

/// The texts between stars; one more than there are stars.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let character = match (character, characters.peek()) {
            ('*', _) => {
                pieces.push(String::new());
                continue;
            }
            ('\\', Some('*')) => characters.next().unwrap_or('*'),
            (other, _) => other,
        };
        if let Some(piece) = pieces.last_mut() {
            piece.push(character);
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Patterns that go back on a mismatch take until the end of time for this one.
    #[test]
    fn a_match_costs_no_more_than_reading() {
        let pattern = Pattern::parse(&"a*".repeat(128)).unwrap();
        let ending = Pattern::parse(&format!("{}b", "a*".repeat(128))).unwrap();
        let key = "a".repeat(512);
        assert!((0..10_000).all(|_| pattern.matches(&key) && !ending.matches(&key)));
    }
}
