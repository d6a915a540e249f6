//! The name that was probably meant.

/// The remedy for an unknown name: the one that was probably meant, or all there are.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, &known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("choose from: {}", known.join(", ")),
    }
}

/// The known name with the fewest edits, if they are few for its length.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // A name far too long is like none; measuring it would only take time.
    let candidates = known.iter().filter(|other| name.len() <= 2 * other.len());
    let measured = candidates.map(|other| (edits(name, other), *other));
    measured.filter(|(edits, other)| *edits <= (other.len() / 3).max(1)).min().map(|(_, other)| other)
}

/// Characters to insert, delete, replace, or swap with their neighbour to get from one text to the other
/// (optimal string alignment).
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for (i, here) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, there) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(here != there);
            let mut fewest = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *here == to[j - 1] && from[i - 1] == *there {
                fewest = fewest.min(rows[i - 1][j - 1] + 1);
            }
            row.push(fewest);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in [("", "", 0), ("", "abc", 3), ("limit", "limit", 0), ("limt", "limit", 1)] {
            assert_eq!(edits(from, to), count, "{from} {to}");
            assert_eq!(edits(to, from), count, "{to} {from}");
        }
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("csot", "cost"), 1, "swapped neighbours");
        assert_eq!(edits("käse", "kase"), 1, "characters, not bytes");
    }

    #[test]
    fn only_a_likely_name_is_suggested() {
        let known = ["limit", "limits", "on_store_error", "edge"];
        assert_eq!(nearest("limt", &known), Some("limit"));
        assert_eq!(nearest("on-store-error", &known), Some("on_store_error"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(did_you_mean("colour", known), "choose from: limit, limits, on_store_error, edge");
        assert_eq!(nearest(&"l".repeat(1_000_000), &known), None);
    }
}
