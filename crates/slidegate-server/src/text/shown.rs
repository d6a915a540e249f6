//! What was written, as an error shows it.

/// Most characters of a text that an error repeats.
const SHOWN_MAX: usize = 64;

/// The text, cut where it would flood the error.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}

/// A message whose every character shows: what a text brought along cannot break the line, move a
/// terminal's cursor or turn the direction of reading.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_show_is_escaped() {
        assert_eq!(escaped("a\u{1b}[2J\n\0\u{202e}\u{feff}"), r"a\u{1b}[2J\n\0\u{202e}\u{feff}");
        for text in ["`käse` \"🧀\" it's {0.25}", r"already \n escaped"] {
            assert_eq!(escaped(text), text);
        }
    }
}
