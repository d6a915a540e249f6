//! Suggestions for misspelt names: the nearest known name by edit distance.

use strsim::osa_distance;

/// Most characters by which a suggestion is longer or shorter.
const LENGTH_DIFFERENCE_MAX: usize = 2;

/// Most edits of a suggestion, however long the name.
const EDITS_MAX: usize = 4;

/// The known name with the fewest edits (insert, delete, replace or swap a character), if they are few for its length.
/// Case is ignored.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (name, length) = (name.to_ascii_lowercase(), name.chars().count());
    let measured = known.filter_map(|other| {
        let (meant, meant_length) = (other.to_ascii_lowercase(), other.chars().count());
        let edits_max = (meant_length / 3).clamp(1, EDITS_MAX);
        // A cheap lower bound before the edit distance: each character that `meant` lacks takes an edit.
        let mut lacking = name.chars().filter(|&character| !meant.contains(character));
        if length.abs_diff(meant_length) > LENGTH_DIFFERENCE_MAX || lacking.nth(edits_max).is_some() {
            return None;
        }
        let edits = osa_distance(&name, &meant);
        (edits <= edits_max).then_some((edits, other))
    });
    measured.min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name may have one edit per three characters, at least one and at most four.
    #[test]
    fn edits_are_counted() {
        for (name, meant, likely) in [
            ("", "", true),
            ("", "a", true),
            ("", "abc", false),
            ("csot", "cost", true),
            ("käse", "kase", true),
            ("OP", "op", true),
            ("IP", "op", true),
            ("ipx", "op", false),
            ("kittne", "sitten", true),
            ("kitten", "sitting", false),
            ("abcdefghi", "abcxyzghi", true),
            ("abcdefghijkl", "abcdvwxyijkl", true),
            ("abcdefghijklmno", "abcvwxyzijklmno", false),
        ] {
            for (name, meant) in [(name, meant), (meant, name)] {
                let expected = Some(meant).filter(|_| likely);
                assert_eq!(nearest(name, [meant].into_iter()), expected, "{name} {meant}");
            }
        }
    }

    #[test]
    fn only_a_likely_name_is_suggested() {
        let known = ["limit", "limits", "on_store_error", "edge"];
        let nearest = |name: &str| nearest(name, known.into_iter());
        assert_eq!(nearest("limt"), Some("limit"), "the fewest edits");
        assert_eq!(nearest("on-store-error"), Some("on_store_error"));
        assert_eq!(nearest("Edge"), Some("edge"));
        assert_eq!(nearest("on_store"), None, "too short to be a slip");
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest(&"l".repeat(1_000_000)), None);
    }
}
