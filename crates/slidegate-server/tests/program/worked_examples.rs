//! The worked examples: traces in `tests/examples` with answers derived by hand, and generated ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{Run, run};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples")
}

/// The stems of the file names with that ending.
fn names(ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(examples()).expect("the examples are there");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("a name of text"));
    files.filter_map(|name| name.strip_suffix(ending).map(ToOwned::to_owned)).collect()
}

#[test]
fn every_example_has_the_expected_answers() {
    let traces = names(".jsonl");
    assert_eq!(traces.len(), 11, "{traces:?}");
    assert_eq!(traces, names(".out"), "every trace has its answers");
    assert!(names(".yaml").is_subset(&traces), "every configuration has its trace");
    for name in traces {
        let path = |ending: &str| examples().join(format!("{name}{ending}")).display().to_string();
        let (config, trace) = (path(".yaml"), path(".jsonl"));
        let mut args = vec!["replay", trace.as_str()];
        if Path::new(&config).exists() {
            args.extend(["--config", config.as_str()]);
        }
        let Run { code, out, err } = run(&args, "");
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        let expected = fs::read_to_string(path(".out")).unwrap();
        for (answer, expected) in out.lines().zip(expected.lines()) {
            assert_eq!(answer, expected, "{name}");
        }
        assert_eq!(out.lines().count(), expected.lines().count(), "{name}");
    }
}

/// A request of cost 1.
fn check(at_us: u64, rule: &Value) -> String {
    json!({ "at_us": at_us, "op": "check", "charges": [{ "rule": rule, "key": "alice" }] }).to_string()
}

/// How many of `count` requests at each of two instants pass.
fn accepted(rule: &Value, instants_us: [u64; 2], count: usize) -> usize {
    let lines = instants_us.iter().flat_map(|&at_us| vec![check(at_us, rule); count]);
    let replayed = run(&["replay"], lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(replayed.code, 0, "{}", replayed.err);
    let answers = replayed.answers();
    assert_eq!(answers.len(), 2 * count);
    answers.iter().filter(|answer| answer["allowed"] == true).count()
}

#[test]
fn example_5_request_by_request() {
    const BOUNDARY_US: u64 = 1_745_000_140_000_000;
    for (algorithm, expected) in [
        ("fixed-window", 100),
        ("sliding-log", 50),
        ("compact-log", 50),
        ("sliding-buckets", 50),
        ("sliding-counter", 55),
        ("gcra", 60),
    ] {
        let rule = json!({ "limit": 50, "window": "10s", "algorithm": algorithm });
        let instants_us = [BOUNDARY_US - 1_000_000, BOUNDARY_US + 1_000_000];
        assert_eq!(accepted(&rule, instants_us, 50), expected, "{algorithm}");
    }
}

#[test]
fn example_5_at_noon() {
    // 2025-04-18T12:00:00Z.
    const NOON_US: u64 = 1_744_977_600_000_000;
    for (algorithm, expected) in [("fixed-window", 200), ("sliding-log", 100)] {
        let rule = json!({ "limit": 100, "window": "1m", "algorithm": algorithm });
        let instants_us = [NOON_US - 1_000_000, NOON_US + 1_000_000];
        assert_eq!(accepted(&rule, instants_us, 100), expected, "{algorithm}");
    }
}

#[test]
fn example_7_ten_thousand_refusals_in_a_minute() {
    const START_US: u64 = 1_745_000_100_000_000;
    const REFUSALS: u64 = 10_000;
    let rule = json!({ "limit": 5, "window": "1h", "algorithm": "sliding-log" });
    let mut lines = vec![check(START_US, &rule); 5];
    let refusals = (1..=REFUSALS).map(|number| check(START_US + number * 6_000, &rule));
    lines.extend(refusals);
    let inspect = json!({ "at_us": START_US + 60_000_000, "op": "inspect", "rule": rule, "key": "alice" });
    lines.push(inspect.to_string());
    let answers = run(&["replay"], lines.join("\n")).answers();
    for (number, answer) in (1..=REFUSALS).zip(&answers[5..]) {
        let opens_after_us = 3_600_000_000 - number * 6_000;
        assert_eq!(answer["allowed"], false);
        assert_eq!(answer["retry_after_us"], opens_after_us, "refusals do not postpone the instant");
    }
    let limits = &answers.last().unwrap()["limits"][0];
    assert_eq!((&limits["used"], &limits["reset_after_us"]), (&json!(5), &json!(3_540_000_000_u64)));
}
