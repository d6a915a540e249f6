//! Lines that cannot be executed: their errors, and that they change nothing.

use crate::program::{Run, file_of, replay, run};

const CONFIG: &str =
    "inline_rules: true\nrules:\n  api: { limit: 5/1m }\n  search: { limits: [2/1m, 10/1h] }\n";

fn replayed(lines: &[&str]) -> Run {
    replay(CONFIG, &lines.iter().map(ToString::to_string).collect::<Vec<_>>())
}

/// Replays each bad line and compares the error code and part of the message.
pub(crate) fn assert_answers(table: &[(&str, &str, &str)]) {
    for (line, kind, words) in table {
        let run = replayed(&[line]);
        assert_eq!(run.code, 2, "{line}");
        assert_eq!(run.err, "error: 1 of 1 lines could not be executed; their answers say why\n", "{line}");
        let answers = run.answers();
        assert_eq!(answers.len(), 1, "{line}");
        assert_eq!(
            (answers[0]["line"].as_u64(), answers[0]["error"].as_str()),
            (Some(1), Some(*kind)),
            "{run:?}"
        );
        let message = answers[0]["message"].as_str().expect("an error has a message");
        assert!(message.contains(words), "{line}\n{message}\n{words}");
    }
}

#[test]
fn lines_that_are_no_operation_are_malformed() {
    assert_answers(&[
        ("{", "malformed", "is not JSON: EOF while parsing an object at column 1"),
        ("check", "malformed", "write one object per line"),
        ("[]", "malformed", "expected an object, found a list"),
        ("7", "malformed", "expected an object, found 7"),
        (r#"{"at_us":1}"#, "malformed", "op: is missing"),
        (r#"{"op":"inspect","rule":"api","key":"a"}"#, "malformed", "at_us: is missing"),
        (r#"{"at_us":1,"op":"chekc"}"#, "malformed", "op: `chekc` is unknown; did you mean `check`?"),
        (r#"{"at_us":1,"op":"burn"}"#, "malformed", "choose from: check, peek, refund"),
        (r#"{"at_us":1,"op":7}"#, "malformed", "op: expected a text in quotes, found 7"),
        (r#"{"at_us":1,"at_us":2,"op":"check"}"#, "malformed", "at_us: is given twice; give it once"),
        (r#"{"at_us":1,"OP":"check"}"#, "malformed", "OP: is not a field here; did you mean `op`?"),
        (r#"{"at_ms":1,"op":"check"}"#, "malformed", "at_ms: is not a field here; did you mean `at_us`?"),
        (r#"{"at_us":1,"op":"check","charges":[]} x"#, "malformed", "trailing characters at column 39"),
    ]);
}

#[test]
fn numbers_must_be_whole() {
    let line = |number: &str| format!(r#"{{"at_us":{number},"op":"inspect","rule":"api","key":"a"}}"#);
    for (number, words) in [
        ("-1", "at_us: expected a whole number from 0 to 253402300799999999, in digits only, found -1"),
        ("1.5", "found 1.5"),
        ("1.0", "found 1.0"),
        ("1e3", "in digits only, found 1000.0"),
        ("18446744073709551616", "found 1.8446744073709552e19"),
        ("\"1\"", "found \"1\""),
        ("null", "found null"),
        ("true", "found true"),
        ("1e400", "number out of range at column 14; write one object per line, numbers in digits only"),
        ("NaN", "is not JSON: expected value at column 10"),
        ("Infinity", "is not JSON: expected value"),
        ("01", "is not JSON: invalid number"),
    ] {
        assert_answers(&[(&line(number), "malformed", words)]);
    }
}

#[test]
fn invalid_charges_are_refused() {
    let line = |charges: &str| format!(r#"{{"at_us":1,"op":"check","charges":{charges}}}"#);
    let of_count = |count: usize| format!("[{}]", vec![r#"{"rule":"api","key":"a"}"#; count].join(","));
    assert_answers(&[
        (r#"{"at_us":1,"op":"check"}"#, "malformed", "charges: is missing"),
        (&line(r#"{"rule":"api"}"#), "malformed", "charges: expected a list in brackets, found an object"),
        (&line("[7]"), "malformed", "charges[0]: expected an object, found 7"),
        (&line(r#"[{"key":"a"}]"#), "malformed", "charges[0].rule: is missing"),
        (&line(r#"[{"rule":"api"}]"#), "malformed", "charges[0].key: is missing"),
        (&line(r#"[{"rule":7,"key":"a"}]"#), "malformed", "charges[0].rule: expected the name of a rule"),
        (&line(r#"[{"rule":"api","key":7}]"#), "malformed", "charges[0].key: expected a text in quotes"),
        (
            &line(r#"[{"rule":"api","key":"a"},{"rule":"api","key":"b","csot":2}]"#),
            "malformed",
            "charges[1].csot: is not a field here; did you mean `cost`?",
        ),
        (
            &line(r#"[{"rule":"api","key":"a","cost":-1}]"#),
            "malformed",
            "charges[0].cost: expected a whole number from 1 to 18446744073709551615, in digits only, found -1",
        ),
        (&line(r#"[{"rule":"api","key":"a","cost":0}]"#), "cost", "cost: 0 asked of rule `api`"),
        (&line(r#"[{"rule":"api","key":""}]"#), "key", "charges[0].key: is empty"),
        (&line(r#"[{"rule":"api","key":"a\nb"}]"#), "key", "charges[0].key: has the control character"),
        (
            &line(&format!(r#"[{{"rule":"api","key":"{}"}}]"#, "k".repeat(513))),
            "key",
            "charges[0].key: has 513 bytes, at most 512",
        ),
        (&line(r#"[{"rule":"apy","key":"a"}]"#), "unknown-rule", "`apy` is unknown; did you mean `api`?"),
        (&line(r#"[{"rule":"login","key":"a"}]"#), "unknown-rule", "choose from: api, search"),
        (&line("[]"), "charges", "0 given; give 1 to 64"),
        (&line(&of_count(65)), "charges", "65 given; give 1 to 64"),
    ]);
}

#[test]
fn the_error_names_the_bad_charge_of_several() {
    let line = |second: &str| {
        let charges = format!(r#"[{{"rule":"api","key":"a","cost":2}},{second}]"#);
        format!(r#"{{"at_us":1,"op":"check","charges":{charges}}}"#)
    };
    assert_answers(&[
        (&line(r#"{"rule":"apy","key":"a"}"#), "unknown-rule", "charges[1].rule: `apy` is unknown"),
        (&line(r#"{"rule":"api","key":"a","cost":0}"#), "cost", "charges[1].cost: 0 asked of rule `api`"),
    ]);
    let answers = replayed(&[
        &line(r#"{"rule":"search","key":"a","cost":3}"#),
        &line(r#"{"rule":"api","key":"a","cost":4}"#),
        &line(r#"{"rule":"api","key":"b","cost":6}"#),
    ])
    .answers();
    for (answer, start) in answers.iter().zip([
        "charges[1].cost: 3 units can never pass rule `search`, whose limit is 2;",
        "charges[0].cost: with the other charges of key `a`, 6 units can never pass rule `api`, whose limit is 5;",
        "charges[1].cost: 6 units can never pass rule `api`",
    ]) {
        assert_eq!(answer["error"], "never");
        assert!(answer["message"].as_str().unwrap().starts_with(start), "{answer}\n{start}");
    }
}

#[test]
fn other_invalid_operations_are_refused() {
    assert_answers(&[
        (r#"{"at_us":1,"op":"refund"}"#, "malformed", "receipt: is missing"),
        (r#"{"at_us":1,"op":"refund","receipt":3}"#, "malformed", "receipt: expected a text in quotes"),
        (r#"{"at_us":1,"op":"refund","receipt":"3"}"#, "receipt", "`3` does not name a line; write \"#3\""),
        (r##"{"at_us":1,"op":"refund","receipt":"#0"}"##, "receipt", "`#0` does not name a line"),
        (r##"{"at_us":1,"op":"refund","receipt":"#1"}"##, "receipt", "line 1 is not before this line"),
        (
            r##"{"at_us":1,"op":"refund","receipt":"#9","actual":1}"##,
            "malformed",
            "actual: is not a field here",
        ),
        (r##"{"at_us":1,"op":"settle","receipt":"#9"}"##, "malformed", "actual: is missing"),
        (r#"{"at_us":1,"op":"credit","rule":"api","key":"a"}"#, "malformed", "units: is missing"),
        (r#"{"at_us":1,"op":"credit","rule":"api","key":"a","units":0}"#, "units", "credit at least 1"),
        (r#"{"at_us":1,"op":"reset","rule":"apy","key":"a"}"#, "unknown-rule", "did you mean `api`?"),
        (r#"{"at_us":1,"op":"reset","rule":"api","key":""}"#, "key", "key: is empty"),
        (r#"{"at_us":1,"op":"inspect","rule":"api"}"#, "malformed", "key: is missing"),
        (
            r#"{"at_us":1,"op":"inspect","rule":"api","key":"a","cost":1}"#,
            "malformed",
            "cost: is not a field here",
        ),
        (r#"{"at_us":1,"op":"limit","rule":"api"}"#, "malformed", "limit: is missing"),
        (r#"{"at_us":1,"op":"limit","rule":"api","limit":7}"#, "malformed", "limit: expected a text"),
        (r#"{"at_us":1,"op":"limit","rule":"api","limit":"7"}"#, "limit", "limit: `7` is not a rate"),
        (r#"{"at_us":1,"op":"limit","rule":"api","limits":[]}"#, "limit", "limits: 0 given"),
        (
            r#"{"at_us":1,"op":"limit","rule":"api","limits":["7/m","x"]}"#,
            "limit",
            "limits[1]: `x` is not a rate",
        ),
        (r#"{"at_us":1,"op":"limit","rule":"api","limits":["7/m","8/60s"]}"#, "limit", "the same window"),
        (r#"{"at_us":1,"op":"limit","rule":"api","limit":"7/m","limits":["7/m"]}"#, "malformed", "keep one"),
        (
            r#"{"at_us":1,"op":"limit","rule":{"limit":5,"window":"1m"},"limit":"7/m"}"#,
            "malformed",
            "rule: expected",
        ),
        (r#"{"at_us":1,"op":"limit","rule":"apy","limit":"7/1m"}"#, "unknown-rule", "did you mean `api`?"),
        (
            r#"{"at_us":253402300800000000,"op":"inspect","rule":"api","key":"a"}"#,
            "time",
            "at_us: 253402300800000000 lies after the year 9999",
        ),
    ]);
}

#[test]
fn references_to_lines_without_a_receipt_are_refused() {
    let answers = replayed(&[
        r#"{"at_us":1,"op":"check","charges":[{"rule":"api","key":"a","cost":5}]}"#,
        r#"{"at_us":2,"op":"check","charges":[{"rule":"api","key":"a"}]}"#,
        r#"{"at_us":2,"op":"check","charges":[{"rule":"apy","key":"a"}]}"#,
        r#"{"at_us":2,"op":"inspect","rule":"api","key":"a"}"#,
        "",
        r##"{"at_us":3,"op":"refund","receipt":"#2"}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#3"}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#4"}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#5"}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#11"}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#1","rule":"search"}"##,
        r##"{"at_us":3,"op":"settle","receipt":"#1","actual":86}"##,
        r##"{"at_us":3,"op":"refund","receipt":"#1","rule":"api"}"##,
        r#"{"at_us":3,"op":"check","charges":[{"rule":"api","key":"a","cost":6}]}"#,
        r##"{"at_us":3,"op":"refund","receipt":"#14"}"##,
    ])
    .answers();
    for (index, kind, words) in [
        (4, "receipt", "line 2 was denied"),
        (5, "receipt", "line 3 failed"),
        (6, "receipt", "line 4 is not a check"),
        (7, "receipt", "line 5 is blank"),
        (8, "receipt", "line 11 is not before this line"),
        (9, "receipt", "is not of rule `search` but of api"),
        (13, "receipt", "line 14 could never pass"),
        (10, "actual", "81 units above the charge of rule `api`, at most 80"),
    ] {
        let answer = &answers[index];
        assert_eq!(answer["error"], kind, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(words), "{answer}");
    }
    assert_eq!(
        (&answers[11]["applied"], &answers[11]["units"]),
        (&true.into(), &5.into()),
        "still worth all of it"
    );
}

#[test]
fn time_must_not_decrease() {
    let inspect = |at_us: u64| format!(r#"{{"at_us":{at_us},"op":"inspect","rule":"api","key":"a"}}"#);
    let run = replay(CONFIG, &[5, 5, 4, 5].map(inspect));
    assert_eq!(run.code, 2);
    let answers = run.answers();
    assert_eq!(answers[2]["error"], "time");
    let message = answers[2]["message"].as_str().unwrap();
    assert_eq!(message, "at_us: 4 is earlier than 5 of a line before; sort the trace by time");
    assert!(answers[3]["error"].is_null());
}

#[test]
fn a_failed_line_changes_nothing_not_even_the_time() {
    let run = replayed(&[
        r#"{"at_us":10,"op":"check","charges":[{"rule":"api","key":"a"}]}"#,
        r#"{"at_us":20,"op":"check","charges":[{"rule":"api","key":"a"},{"rule":"apy","key":"a"}]}"#,
        r#"{"at_us":30,"op":"check","charges":[{"rule":"api","key":"a"},{"rule":"api","key":""}]}"#,
        r#"{"at_us":11,"op":"inspect","rule":"api","key":"a"}"#,
    ]);
    assert_eq!(run.err, "error: 2 of 4 lines could not be executed; their answers say why\n");
    assert_eq!(run.answers()[3]["limits"][0]["used"], 1);
}

#[test]
fn without_a_configuration_there_are_no_named_rules() {
    let run = run(&["replay"], r#"{"at_us":1,"op":"inspect","rule":"api","key":"a"}"#);
    assert_eq!(run.code, 2);
    let message = run.answers()[0]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("give one, or write the rule inline"), "{message}");
}

#[test]
fn long_and_binary_lines_are_answered_and_skipped() {
    let good = r#"{"at_us":1,"op":"inspect","rule":"api","key":"a"}"#;
    let padded = |bytes: usize| format!("{good}{}", " ".repeat(bytes - good.len())).into_bytes();
    let lines =
        [padded(1 << 20), padded((1 << 20) + 1), padded(5 << 20), b"{\"at_us\":\xff}".to_vec(), padded(99)];
    let file = file_of("api.yaml", CONFIG);
    let run = run(&["replay", "--config", &file], lines.join(&b'\n'));
    let answers = run.answers();
    assert_eq!((run.code, answers.len()), (2, 5));
    for (index, words) in
        [(1, "more than 1048576 bytes"), (2, "more than 1048576 bytes"), (3, "is not UTF-8 at column 10")]
    {
        assert_eq!(answers[index]["error"], "malformed");
        assert!(answers[index]["message"].as_str().unwrap().contains(words), "{}", answers[index]);
    }
    assert_eq!((&answers[0]["limits"][0]["used"], &answers[4]["limits"][0]["used"]), (&0.into(), &0.into()));
}
