//! Finds paths in code that begin with a crate.

use super::code::{is_word, word_len};

/// The first name of a path after its root.
pub(super) struct Mention<'a> {
    /// Its byte offset.
    pub(super) at: usize,
    pub(super) name: &'a str,
}

impl Mention<'_> {
    /// Counted from 1.
    pub(super) fn line(&self, code: &str) -> usize {
        code[..self.at].matches('\n').count() + 1
    }
}

/// Every path in `code` that begins with `root`: `root::name::Thing`, `root::{name::Thing, other}`.
pub(super) fn mentions<'a>(code: &'a str, root: &str) -> Vec<Mention<'a>> {
    let prefix = format!("{root}::");
    let roots = code.match_indices(&prefix).filter(|(at, _)| !code[..*at].ends_with(is_word));
    roots.flat_map(|(at, _)| first_names(code, at + prefix.len())).collect()
}

/// The name at `at`, or those of the group in braces.
fn first_names(code: &str, at: usize) -> Vec<Mention<'_>> {
    let mention = |at: usize| Mention { at, name: &code[at..at + word_len(&code[at..])] };
    if !code[at..].starts_with('{') {
        return vec![mention(at)];
    }
    let mut names = Vec::new();
    let mut depth = 0;
    let mut expected = false;
    for (offset, c) in code[at..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if expected && is_word(c) {
            names.push(mention(at + offset));
        }
        expected = depth == 1 && ("{,".contains(c) || expected && c.is_whitespace());
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_groups_are_parsed() {
        for (code, expected) in [
            ("use crate::key::Key;", &["key"][..]),
            ("crate::f(crate::rule::g())", &["f", "rule"]),
            ("use crate::{key::{self, Key}, rule, time as t};", &["key", "rule", "time"]),
            ("use crate::{\n    key::Key,\n    rate::Rate,\n};\nfn store() {}", &["key", "rate"]),
            ("pub(crate) use subcrate::key; super::crates::key", &[]),
        ] {
            let names: Vec<&str> = mentions(code, "crate").iter().map(|mention| mention.name).collect();
            assert_eq!(names, expected, "{code}");
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        let code = "a;\nuse crate::{\n    key,\n};";
        assert_eq!(mentions(code, "crate")[0].line(code), 3);
    }
}
