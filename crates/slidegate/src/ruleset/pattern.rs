//! Patterns of keys: `ci-*`.

/// Keys of one shape, as the texts between its stars. `*` stands for any text, also for none; everything else for
/// itself, and `\*` for a star.
///
/// There is nothing but stars, so the first place where a piece fits is as good as any later one: a match never
/// goes back, and costs no more than reading the key once per piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<String>);

impl Pattern {
    /// Reads a pattern; a text without a star is none, and is given back as the key that it stands for.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
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

    /// Whether a key is of this shape.
    pub(super) fn matches(&self, key: &str) -> bool {
        let [first, between @ .., last] = self.0.as_slice() else { return false };
        let Some(mut rest) = key.strip_prefix(first.as_str()) else { return false };
        for piece in between {
            let Some(at) = rest.find(piece.as_str()) else { return false };
            rest = &rest[at + piece.len()..];
        }
        rest.ends_with(last.as_str())
    }

    /// Whether every key is of this shape.
    pub(super) fn matches_all(&self) -> bool {
        self.0.iter().all(String::is_empty)
    }
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
