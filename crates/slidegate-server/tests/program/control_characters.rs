//! Invisible characters are escaped in all output.

use crate::config_files::assert_mistake;
use crate::malformed_lines::assert_answers;
use crate::program::{command, output_of};

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

/// A path or a name must not write to the terminal, by any command.
#[test]
fn control_characters_of_arguments_are_escaped() {
    let bad = "no\u{1b}[2J\nerror: such";
    let file = format!("sqlite:{bad}/state.db");
    for args in [
        &["check", "alice", "--limit", "5/m", "--store", &file][..],
        &["check", "alice", "--limit", "5/m", "--store", &file, "--on-store-error", "allow"],
        &["run", "alice", "--limit", "5/m", "--store", &file, "--", "true"],
        &["reset", "alice", "--limit", "5/m", "--store", &file],
        &["replay", "--store", &file],
        &["serve", "--http", "127.0.0.1:0", "--store", &file],
        &["check", "alice", "--rule", bad],
        &["check", "alice", "--rule", "api", "--config", bad],
        &["redis", "script", bad],
        &["help", bad],
        &["validate", bad],
    ] {
        let run = output_of(&mut command(args));
        let escaped = run.err.contains(r"no\u{1b}[2J\nerror: such");
        assert!(
            escaped && !run.err.contains('\u{1b}') && run.err.lines().count() == 1,
            "{args:?}: {:?}",
            run.err
        );
    }
    let variable =
        output_of(command(&["check", "alice", "--limit", "5/m"]).env("SLIDEGATE_STORE", "di\u{1b}sk"));
    assert!(
        variable.err.starts_with(r"error: SLIDEGATE_STORE: `di\u{1b}sk` is not available; "),
        "{}",
        variable.err
    );
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
