//! Rust source with comments and literals blanked, so that rules about code skip prose.

/// The text with every comment, string and character replaced by blanks. Line numbers stay.
pub(super) fn blanked(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let prose = comment_len(rest).or_else(|| literal_len(rest));
        let len = prose.unwrap_or_else(|| word_len(rest).max(first.len_utf8()));
        let (piece, after) = rest.split_at(len);
        if prose.is_some() {
            code.extend(piece.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            code.push_str(piece);
        }
        rest = after;
    }
    code
}

/// Bytes of the identifier or number that begins here.
pub(super) fn word_len(text: &str) -> usize {
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

/// Whether it can be part of an identifier.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn comment_len(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    Some(at)
}

fn literal_len(text: &str) -> Option<usize> {
    let after_prefix = text.trim_start_matches(['b', 'c']);
    let prefix_len = text.len() - after_prefix.len();
    let len = match after_prefix.chars().next()? {
        '"' => quoted_len(after_prefix, '"'),
        'r' => raw_len(after_prefix)?,
        '\'' => character_len(after_prefix)?,
        _ => return None,
    };
    Some(prefix_len + len)
}

/// Bytes from a quote to the next quote without a backslash before it.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let closing = text.char_indices().skip(1).find(|&(_, c)| {
        let closes = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    closing.map_or(text.len(), |(at, _)| at + quote.len_utf8())
}

fn raw_len(text: &str) -> Option<usize> {
    let body = text.strip_prefix('r')?.trim_start_matches('#');
    let hashes = text.len() - 1 - body.len();
    let closing = format!("\"{}", "#".repeat(hashes));
    let opened = body.strip_prefix('"')?;
    let start = text.len() - opened.len();
    Some(opened.find(&closing).map_or(text.len(), |at| start + at + closing.len()))
}

/// Bytes of a quoted character; `None` if the quote begins a lifetime.
fn character_len(text: &str) -> Option<usize> {
    let mut chars = text.chars().skip(1);
    let character = chars.next()?;
    (character == '\\' || chars.next() == Some('\'')).then(|| quoted_len(text, '\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, code) in [
            ("let a = 1; // f64\nb", "let a = 1;       \nb"),
            ("/* a /* b */ c */d", "                 d"),
            (r#"f("a\"b", c)"#, "f(      , c)"),
            ("r#\"a\"b\"#.len()", "        .len()"),
            ("br\"\\\";b'\\'';c", "     ;     ;c"),
            ("fn f<'a>(x: &'a u8) -> char { 'é' }", "fn f<'a>(x: &'a u8) -> char {     }"),
            ("['\"', '\\\\', x]", "[   ,     , x]"),
            ("r#type + for_r\"s\"", "r#type + for_r   "),
        ] {
            assert_eq!(blanked(text), code, "{text}");
        }
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "/* one\ntwo */ \"three\nfour\" five";
        assert_eq!(blanked(text).lines().count(), 3);
        assert_eq!(blanked(text).lines().last(), Some("      five"));
    }

    #[test]
    fn unclosed_comments_and_literals_end_with_the_file() {
        for text in ["/* a", "\"a", "r#\"a\"", "'\\"] {
            assert_eq!(blanked(text).trim(), "", "{text}");
        }
    }
}
