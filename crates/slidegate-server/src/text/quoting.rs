//! How errors quote user input, and suggest the name that was probably meant.

pub(crate) use slidegate::ruleset::nearest;

/// Most characters of user input that an error repeats.
const EXCERPT_CHARS_MAX: usize = 64;

/// The start of a text, short enough for an error.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS_MAX).collect()
}

/// The message with invisible characters escaped: line breaks, terminal controls and bidirectional overrides.
pub(crate) fn escaped(message: &str) -> String {
    let mut escaped = String::with_capacity(message.len());
    for character in message.chars() {
        if is_hidden(character) {
            escaped.extend(character.escape_debug());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_hidden(character: char) -> bool {
    let turns_direction =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') || turns_direction
}

/// The remedy for an unknown name: the nearest known name, or all of them.
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
    fn only_invisible_characters_are_escaped() {
        assert_eq!(escaped("a\u{1b}[2J\n\0\u{202e}\u{feff}"), r"a\u{1b}[2J\n\0\u{202e}\u{feff}");
        for text in ["`käse` \"🧀\" it's {0.25}", r"already \n escaped"] {
            assert_eq!(escaped(text), text);
        }
    }

    #[test]
    fn all_names_are_listed_if_none_is_near() {
        let known = ["limit", "limits", "on_store_error", "edge"];
        assert_eq!(did_you_mean("limt", &known), "did you mean `limit`?");
        assert_eq!(did_you_mean("colour", &known), "choose from: limit, limits, on_store_error, edge");
    }
}
