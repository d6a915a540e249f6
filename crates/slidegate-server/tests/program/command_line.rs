//! Arguments, help, pipes and exit statuses.

use std::io::{self, BufRead, BufReader, Write};

use crate::program::{command, file_of, run};

#[test]
fn help_shows_an_example() {
    for args in [&["--help"][..], &["-h"], &["demo", "--help"], &["replay", "--help"], &["replay", "-h"]] {
        let help = run(args, "");
        assert_eq!((help.code, help.err.as_str()), (0, ""), "{args:?}");
        assert!(help.out.contains("slidegate demo") || help.out.contains("slidegate replay"), "{args:?}");
    }
    assert!(run(&["demo", "--help"], "").out.contains("Example"));
    assert!(run(&["replay", "--help"], "").out.contains("Example"));
}

#[test]
fn the_example_in_the_help_prints_what_it_says() {
    let help = run(&["replay", "--help"], "").out;
    let (_, example) = help.split_once("slidegate replay <<'EOF'\n").unwrap();
    let (trace, rest) = example.split_once("EOF\n").unwrap();
    let (_, printed) = rest.split_once("It prints:\n\n").unwrap();
    let (printed, _) = printed.split_once("\n\n").unwrap();
    let replayed = run(&["replay"], trace);
    assert_eq!((replayed.code, replayed.out.trim_end()), (0, printed));
}

#[test]
fn unknown_arguments_exit_with_2() {
    for args in [&["dmeo"][..], &[], &["demo", "extra"], &["replay", "--confg", "x"], &["replay", "--config"]]
    {
        let run = run(args, "");
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(!run.err.is_empty(), "{args:?}");
    }
    assert!(run(&["dmeo"], "").err.contains("demo"), "the command that was probably meant");
}

#[test]
fn an_unknown_store_error_lists_the_known_ones() {
    assert_eq!(run(&["replay", "--store", "memory"], "").code, 0);
    for store in ["mysql://db", "Memory", ""] {
        let run = run(&["replay", "--store", store], "");
        assert_eq!(run.code, 2, "{store}");
        assert!(
            run.err.contains("is not available; write `memory`, `sqlite:PATH` or `redis://HOST:PORT`"),
            "{}",
            run.err
        );
    }
}

#[test]
fn a_trace_comes_from_a_file_or_from_stdin() {
    let line = r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    let file = file_of("trace.jsonl", line);
    let from_file = run(&["replay", &file], "");
    assert_eq!(from_file.code, 0);
    assert_eq!(from_file.out, run(&["replay"], line).out, "a last line needs no line break");
    assert_eq!(from_file.out, run(&["replay", "-"], format!("{line}\r\n")).out);
    assert_eq!(from_file.out.lines().count(), 1);
    let missing = run(&["replay", "no-such-trace.jsonl"], "");
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert!(missing.err.starts_with("error: cannot open the trace no-such-trace.jsonl: "), "{}", missing.err);
    let directory = run(&["replay", env!("CARGO_MANIFEST_DIR")], "");
    assert_eq!(directory.code, 2);
    assert!(directory.err.starts_with("error: cannot read line 1 of the trace: "), "{}", directory.err);
    assert_eq!(directory.err.matches("directory").count(), 1, "said once: {}", directory.err);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let line = r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    let marked = run(&["replay"], format!("\u{feff}{line}\n{line}\n"));
    assert_eq!((marked.code, marked.out), (0, run(&["replay"], format!("{line}\n{line}\n")).out));
    let inside = run(&["replay"], format!("{line}\n\u{feff}{line}\n"));
    assert_eq!(inside.code, 2, "only at the start of the file");
}

#[test]
fn blank_lines_are_counted_and_not_answered() {
    let line = r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    let replayed = run(&["replay"], format!("\n{line}\n  \t\r\n{line}\n\n"));
    let lines: Vec<_> = replayed.answers().iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 4]);
    let nothing = run(&["replay"], "");
    assert_eq!((nothing.code, nothing.out.as_str(), nothing.err.as_str()), (0, "", ""));
}

#[test]
fn a_closed_pipe_does_not_panic() {
    let line = r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1m } }\n");
    for (args, input) in [
        (&["demo"][..], String::new()),
        (&["replay"], format!("{line}\n").repeat(20_000)),
        (&["help", "algorithms"], String::new()),
        (&["completions", "bash"], String::new()),
        (&["man"], String::new()),
        (&["redis", "script", "check"], String::new()),
        (&["schema"], String::new()),
        (&["config", "example"], String::new()),
        (&["validate", &config], String::new()),
        (&["validate", "--json", &config], String::new()),
    ] {
        let (reader, writer) = io::pipe().unwrap();
        // Before the program starts, so that its first write fails.
        drop(reader);
        let mut child = command(args).stdout(writer).spawn().unwrap();
        // The program may have ended before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}

#[test]
fn every_answer_is_flushed_before_the_next_line_is_read() {
    let mut child = command(&["replay"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in 1..=3 {
        writeln!(stdin, r#"{{"at_us":1,"op":"inspect","rule":{{"limit":5,"window":"1m"}},"key":"a"}}"#)
            .unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.starts_with(&format!(r#"{{"line":{number},"#)), "{answer}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_answer_does_not_wait_for_the_rest_of_the_next_line() {
    let mut child = command(&["replay"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let rest = r#""op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    // In one write, so that the program reads both parts at once.
    stdin.write_all(format!("{{\"at_us\":1,{rest}\n{{\"at_us\":2,").as_bytes()).unwrap();
    assert!(answers.next().unwrap().unwrap().starts_with(r#"{"line":1,"rule""#));
    writeln!(stdin, "{rest}").unwrap();
    assert!(answers.next().unwrap().unwrap().starts_with(r#"{"line":2,"rule""#));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
