//! Invisible characters are escaped in all output.

use crate::config_files::assert_mistake;
use crate::malformed_lines::assert_answers;

#[test]
fn control_characters_of_a_trace_are_escaped() {
    assert_answers(&[
        (
            r#"{"at_us":1,"op":"inspect","rule":"a\u001b[2J","key":"a"}"#,
            "unknown-rule",
            r"`a\u{1b}[2J` is unknown",
        ),
        (r#"{"at_us":1,"op":"in\nspect"}"#, "malformed", r"op: `in\nspect` is unknown"),
        (r#"{"at_us":"\u0000","op":"inspect"}"#, "malformed", r#"found "\0""#),
        (
            r#"{"at_us":1,"op":"reset","rule":"api","key":"a","\r":1}"#,
            "malformed",
            r"\r: is not a field here",
        ),
        (r#"{"at_us":1,"op":"limit","rule":"api","limit":"5\t/m"}"#, "limit", r"`5\t/m` is not a rate"),
        (
            r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a\u2066b"}"#,
            "key",
            r"key: has the invisible character '\u{2066}' at byte 2",
        ),
        (r#"{"at_us":1,"op":"refund","receipt":"\u202e3"}"#, "receipt", r"`\u{202e}3` does not name a line"),
    ]);
}

#[test]
fn control_characters_of_a_configuration_are_escaped() {
    for (config, place, words) in [
        (r#"rules: { "a\e[2J": { limit: 5/1m } }"#, "1:10", r"rule `a\u{1b}[2J`: the name has '\u{1b}'"),
        (r#"rules: { "a\nb": 7 }"#, "1:18", r"rule `a\nb`: expected fields, found `7`"),
        (r#"rules: { a: { limit: "5\t/1m" } }"#, "1:22", r"limit: `5\t/1m` is not a rate"),
        (r#"rules: { a: { limit: 5/1m, "li\rmit": 5/1m } }"#, "1:28", r"li\rmit: is not a field"),
        (r#"{ rules: { a: { limit: 5/1m } }, "x\Ly": 1 }"#, "1:34", r"x\u{2028}y: is not a field"),
        (r#"{ rules: { a: { limit: 5/1m } }, store: "\e" }"#, "1:41", r"store: `\u{1b}` is not available"),
    ] {
        let found = assert_mistake(config, place, words);
        assert!(!found.trim_end().contains(char::is_control), "{found:?}");
    }
}
