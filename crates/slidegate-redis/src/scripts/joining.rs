//! Joins a script from files: named constants become literals, and parts that one script does not need are left out.

use std::collections::BTreeMap;

/// The constants that are known so far, by name.
pub(super) type Constants<'a> = BTreeMap<&'a str, &'a str>;

/// The lines between these two are left out of the short scripts.
const GENERAL_ONLY: (&str, &str) = ("-- general only", "-- general only ends");

/// Replaces named constants by their values. A constant is a line `local NAME = VALUE -- reason`, or several names and
/// values after commas; it stays as a comment, and its value counts up to the next line that defines the name.
///
/// Left as locals they would cost in every call, because each Lua function captures the locals that it uses.
pub(super) fn with_literals<'a>(text: &'a str, mut constants: Constants<'a>) -> String {
    let mut replaced = String::with_capacity(text.len());
    for line in text.lines() {
        let (code, comment) = line.split_at(line.find("--").unwrap_or(line.len()));
        if let Some(defined) = definition(code) {
            constants.extend(defined);
            replaced.push_str("-- ");
            replaced.push_str(line.trim_start());
        } else {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let mut rest = code;
            while let Some(start) = rest.find(is_letter) {
                let (before, word) = rest.split_at(start);
                let (word, after) = word.split_at(word.find(|c| !is_letter(c)).unwrap_or(word.len()));
                replaced.push_str(before);
                replaced.push_str(constants.get(word).unwrap_or(&word));
                rest = after;
            }
            replaced.push_str(rest);
            replaced.push_str(comment);
        }
        replaced.push('\n');
    }
    replaced
}

/// The constants that a text defines.
pub(super) fn definitions(text: &str) -> Constants<'_> {
    let code = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.filter_map(definition).flatten().collect()
}

/// The constants that a line of code defines, if it does nothing else.
fn definition(code: &str) -> Option<Vec<(&str, &str)>> {
    let (names, values) = code.trim().strip_prefix("local ")?.split_once(" = ")?;
    let (names, values): (Vec<_>, Vec<_>) = (names.split(", ").collect(), values.split(", ").collect());
    let is_name =
        |name: &&str| name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_literal = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit() || c == '\'');
    let constant = names.len() == values.len() && names.iter().all(is_name) && values.iter().all(is_literal);
    constant.then(|| names.into_iter().zip(values).collect())
}

/// A file as the short scripts hold it: without the comment at its top, and without what only the general scripts need.
pub(super) fn shortened(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut general = false;
    for line in text.lines().skip_while(|line| line.starts_with("--")) {
        let mark = line.trim_start();
        if mark == GENERAL_ONLY.0 {
            general = true;
        } else if mark == GENERAL_ONLY.1 {
            general = false;
        } else if !general {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_replaced_up_to_their_next_definition() {
        let text = "local A, B = 7, '>I6' -- reason\nlocal a = A + A_B * f(B, 'A') -- A stays\n  local A = 0x1F\nreturn A\n";
        let expected = "-- local A, B = 7, '>I6' -- reason\nlocal a = 7 + A_B * f('>I6', '7') -- A stays\n\
                        -- local A = 0x1F\nreturn 0x1F\n";
        assert_eq!(with_literals(text, Constants::new()), expected);
        let other = "local a = 7\nlocal A = f(1)\nlocal A, B = 1\nA = 3\n";
        assert_eq!(with_literals(other, Constants::new()), other);
        assert_eq!(with_literals("return A\n", definitions(text)), "return 0x1F\n");
    }

    #[test]
    fn general_parts_are_left_out() {
        let text =
            "-- head\nlocal a = 1\n  -- general only\n  a = 2\n  -- general only ends\n-- stays\nreturn a\n";
        assert_eq!(shortened(text), "local a = 1\n-- stays\nreturn a\n");
    }
}
