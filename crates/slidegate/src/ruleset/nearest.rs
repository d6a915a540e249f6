//! The name that was probably meant.

/// A name that was meant is so many characters longer or shorter at most.
const LENGTH_DIFFERENCE_MAX: usize = 2;

/// More edits than these are no slip, however long the name.
const EDITS_MAX: usize = 4;

/// The known name with the fewest edits, if they are few for its length.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().collect();
    let measured = known.filter_map(|other| {
        let meant: Vec<char> = other.chars().collect();
        if name.len().abs_diff(meant.len()) > LENGTH_DIFFERENCE_MAX {
            return None;
        }
        let edits = edits_within((meant.len() / 3).clamp(1, EDITS_MAX), &name, &meant)?;
        Some((edits, other))
    });
    measured.min().map(|(_, other)| other)
}

/// Characters to insert, delete, replace, or swap with their neighbour to get from one text to the other
/// (optimal string alignment); `None` as soon as they are more than `edits_max`. Case is no edit: `OP` is
/// as near to `op` as can be.
fn edits_within(edits_max: usize, from: &[char], to: &[char]) -> Option<usize> {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (i, here) in from.iter().enumerate() {
        // Further from the diagonal than `edits_max`, all is out of reach.
        let near = i.saturating_sub(edits_max)..(i + edits_max + 1).min(to.len());
        let mut row = vec![edits_max + 1; to.len() + 1];
        if i < edits_max {
            row[0] = i + 1;
        }
        for (j, there) in to.iter().enumerate().take(near.end).skip(near.start) {
            let replaced = above[j] + usize::from(!here.eq_ignore_ascii_case(there));
            let mut fewest = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            let swapped = i > 0
                && j > 0
                && here.eq_ignore_ascii_case(&to[j - 1])
                && from[i - 1].eq_ignore_ascii_case(there);
            if swapped {
                fewest = fewest.min(before[j - 1] + 1);
            }
            row[j + 1] = fewest;
        }
        // No later row can fall below the least of this one.
        if row.iter().all(|&edits| edits > edits_max) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    Some(above[to.len()]).filter(|&edits| edits <= edits_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let edits = |edits_max, from: &str, to: &str| {
            let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
            edits_within(edits_max, &from, &to)
        };
        for (from, to, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("limit", "limit", 0),
            ("limt", "limit", 1),
            ("kitten", "sitting", 3),
            ("csot", "cost", 1),
            ("käse", "kase", 1),
            ("OP", "op", 0),
            ("IP", "op", 1),
        ] {
            for edits_max in 0..5 {
                let expected = Some(count).filter(|&count| count <= edits_max);
                assert_eq!(edits(edits_max, from, to), expected, "{from} {to} {edits_max}");
                assert_eq!(edits(edits_max, to, from), expected, "{to} {from} {edits_max}");
            }
        }
    }

    #[test]
    fn only_a_likely_name_is_suggested() {
        let known = ["limit", "limits", "on_store_error", "edge"];
        let nearest = |name: &str| nearest(name, known.into_iter());
        assert_eq!(nearest("limt"), Some("limit"));
        assert_eq!(nearest("on-store-error"), Some("on_store_error"));
        assert_eq!(nearest("Edge"), Some("edge"));
        assert_eq!(nearest("on_store"), None, "too short to be a slip");
        assert_eq!(nearest("colour"), None);
        assert_eq!(nearest(&"l".repeat(1_000_000)), None);
    }
}
