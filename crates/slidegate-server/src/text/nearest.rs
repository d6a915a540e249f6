//! The name that was probably meant.

pub(crate) use slidegate::ruleset::nearest;

/// The remedy for a name that is none of a few: the one that was probably meant, or all there are.
pub(crate) fn did_you_mean(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("choose from: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_likely_name_all_are_listed() {
        let known = ["limit", "limits", "on_store_error", "edge"];
        assert_eq!(did_you_mean("limt", &known), "did you mean `limit`?");
        assert_eq!(did_you_mean("colour", &known), "choose from: limit, limits, on_store_error, edge");
    }
}
