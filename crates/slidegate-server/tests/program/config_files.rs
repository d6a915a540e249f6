//! Configuration files: valid ones, and the error of every mistake.

use crate::program::{file_of, run};

const SECOND_US: u64 = 1_000_000;
/// An empty trace.
const NOTHING: &str = "\n";

#[test]
fn the_documented_example_has_the_documented_limits() {
    let config = "\
rules:
  api:        { limit: 60/1m, algorithm: sliding-log }
  yt-quota:   { limit: 10000/24h, headroom: 0.05, on_store_error: allow }
  yt-search:  { limits: [500/10m, 2000/24h], on_store_error: deny }
  waf:        { limit: 2000/5m, algorithm: sliding-buckets, buckets: 60, shadow: true }
store: memory            # memory | sqlite:PATH | redis://... | redis+cluster://... | redis+sentinel://...
";
    let file = file_of("example.yaml", config);
    let inspect = |rule: &str| format!(r#"{{"at_us":1,"op":"inspect","rule":"{rule}","key":"a"}}"#);
    let lines = ["api", "yt-quota", "yt-search", "waf"].map(inspect).join("\n");
    let replayed = run(&["replay", "--config", &file], lines);
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""));
    let limits = |answer: &serde_json::Value| {
        let limits = answer["limits"].as_array().unwrap().iter();
        limits
            .map(|limit| (limit["limit"].as_u64().unwrap(), limit["window_us"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let found: Vec<_> = replayed.answers().iter().map(limits).collect();
    assert_eq!(
        found,
        [
            vec![(60, 60 * SECOND_US)],
            vec![(9_500, 86_400 * SECOND_US)],
            vec![(500, 600 * SECOND_US), (2_000, 86_400 * SECOND_US)],
            vec![(2_000, 300 * SECOND_US)],
        ]
    );
}

#[test]
fn every_form_of_a_rule_is_accepted() {
    let config = r#"
rules:
  compact: { limit: 5/m, algorithm: compact-log, entries: 16, headroom: "0.1" }
  ring:
    limit: "5/250ms"
    algorithm: sliding-buckets
    edge: dropped
  local: &local { limit: 5/1m, on_store_error: { local: 0.25 } }
  same: *local
  merged: { <<: *local, headroom: 0 }
  many: { limits: [5/1s, 60/30s, 100/5m], shadow: false, algorithm: gcra }
  lossy: { limit: 5/1m, at_budget: evict-oldest }
  kept: { limit: 5/1m, overrides: { alice: 600/1m, bob: [5/1s, 60/1h], "ci-*": unlimited, "*": blocked } }
  "on": { limit: 1000000000000/400d, algorithm: fixed-window }
"#;
    let file = file_of("all.yaml", config);
    let replayed = run(&["replay", "--config", &file], NOTHING);
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""));
}

#[test]
fn every_mistake_has_its_position_and_remedy() {
    for (config, position, words) in [
        ("", "1:1", "is empty; write for example `rules: { api: { limit: 60/1m } }`"),
        ("# rules\n", "1:1", "is empty"),
        ("---\n", "1:1", "is empty"),
        ("rules:\n", "1:6", "rules: expected rules by name, found nothing"),
        ("rules: {}\n", "1:8", "rules: expected rules by name, found none"),
        ("rules: [api]\n", "1:8", "rules: expected rules by name, found a list"),
        ("store: memory\n", "1:1", "rules: is missing"),
        ("- a\n", "1:1", "expected a mapping with `rules`, found a list"),
        ("rules: { a: { limit: 5/1m }\n", "1:8", "is not YAML: "),
        ("rules:\n\ta: 1\n", "2:2", "is not YAML: tabs disallowed"),
        ("rules: { a: { limit: 5/1m } }\nruels: {}\n", "2:1", "ruels: is not a field; did you mean `rules`?"),
        (
            "rules: { a: { limit: 5/1m } }\ninline_rules: yes\n",
            "2:15",
            "inline_rules: expected true or false, found `yes`",
        ),
        ("rules: { a: { limit: 5/1m } }\n---\nrules: {}\n", "3:1", "a second document begins"),
        ("rules:\n  a: { limit: 5/1m }\n  a: { limit: 6/1m }\n", "3:3", "a: is given twice"),
        ("rules: { a: { limit: 5/1m } }\nstore: [memory]\n", "2:8", "store: expected a text, found a list"),
        (
            "rules: { a: { limit: 5/1m } }\nstore: mysql://root:hunter2@x\n",
            "2:8",
            "store: `mysql:...` is not available; write `memory`, `sqlite:PATH` or `redis://HOST:PORT`",
        ),
        ("rules: { ~: { limit: 5/1m } }\n", "1:10", "a name is missing"),
    ] {
        assert_mistake(config, position, words);
    }
}

#[test]
fn every_mistake_of_a_rule_names_rule_and_field() {
    assert_mistakes(&[
        ("5/1m", 8, "expected fields, found `5/1m`; write { limit: 60/1m }"),
        ("", 6, "expected fields, found nothing"),
        ("{}", 3, "limit: is missing"),
        ("{ limit: 60 }", 17, "limit: expected LIMIT/WINDOW, found `60`"),
        ("{ limit: banana }", 17, "limit: `banana` is not a rate; write LIMIT/WINDOW"),
        ("{ limit: 0/1m }", 17, "limit: 0 units are outside 1 to 1000000000000"),
        ("{ limit: 5/401d }", 17, "limit: the window `401d` is outside 1 ms to 400 d"),
        ("{ limit: 5/1m, limits: [5/1m] }", 31, "limits: cannot be combined with limit; keep one of them"),
        ("{ limits: 5/1m }", 18, "limits: expected a list, found `5/1m`"),
        ("{ limits: [] }", 3, "limits: 0 given; give 1 to 16"),
        ("{ limits: [5/1m, 6] }", 25, "limits[1]: expected LIMIT/WINDOW, found `6`"),
        ("{ limits: [5/1m, 6/60s] }", 3, "limits: 5/1m and 6/1m have the same window"),
        ("{ limit: 5/1m, limt: 5/1m }", 23, "limt: is not a field of a rule; did you mean `limit`?"),
        ("{ limit: 5/1m, on-store-error: deny }", 23, "did you mean `on_store_error`?"),
        ("{ limit: 5/1m, colour: red }", 23, "colour: is not a field of a rule; choose from: limit, limits,"),
        (
            "{ limit: 5/1m, overrides: [a] }",
            34,
            "overrides: expected keys, found a list; write { alice: 600/1m }",
        ),
        (
            "{ limit: 5/1m, overrides: { a: block } }",
            39,
            "overrides: `a`: `block` is unknown; did you mean `blocked`?",
        ),
        (
            "{ limit: 5/1m, overrides: { a: unlimted } }",
            39,
            "`unlimted` is unknown; did you mean `unlimited`?",
        ),
        ("{ limit: 5/1m, overrides: { a: x } }", 39, "`a`: `x` is not a rate; write LIMIT/WINDOW"),
        (
            "{ limit: 5/1m, overrides: { a: 600 } }",
            39,
            "`a`: found `600`; write a rate such as 600/1m, a list of",
        ),
        ("{ limit: 5/1m, overrides: { a: [6/1m, y] } }", 46, "`a`: `y` is not a rate"),
        ("{ limit: 5/1m, overrides: { a: [] } }", 39, "`a`: limits: 0 given"),
        (
            "{ limit: 5/1m, overrides: { '*': blocked, 'b*': blocked } }",
            50,
            "`b*`: comes after a pattern that every",
        ),
        ("{ limit: 5/1m, overrides: { '': blocked } }", 36, "``: key: "),
        ("{ limit: 5/1m, overrides: { a: 6/1m, a: 7/1m } }", 45, "a: is given twice"),
        ("{ limit: 5/1m, match: {} }", 23, "match: is not supported by this version"),
        (
            "{ limit: 5/1m, at_budget: evict_oldest }",
            34,
            "at_budget: `evict_oldest` is unknown; did you mean",
        ),
        ("{ limit: 5/1m, headroom: 1.5 }", 33, "headroom: `1.5` is not a decimal from 0 to 1"),
        ("{ limit: 5/1m, headroom: 0.0000001 }", 33, "headroom: `0.0000001` is not a decimal"),
        ("{ limit: 5/1m, headroom: .nan }", 33, "headroom: `.nan` is not a decimal"),
        ("{ limit: 5/1m, headroom: 1 }", 3, "headroom: 1 leaves no units"),
        ("{ limit: 5/1m, take_over: us }", 34, "take_over: `us` is unknown; write ms or s"),
        ("{ limits: [5/1m, 9/1h], take_over: ms }", 3, "take_over: is only for sliding-log with one limit"),
        ("{ limit: 5/1m, algorithm: gcra, take_over: ms }", 3, "take_over: is only for sliding-log"),
        (
            "{ limit: 5/1m, shards: 2, take_over: ms }",
            3,
            "take_over: is only for sliding-log with one limit and without shards",
        ),
        (
            "{ limit: 5/1m, take_over: s, overrides: { a: [5/1m, 9/1h] } }",
            53,
            "overrides: `a`: take_over: is only for sliding-log with one limit",
        ),
        ("{ limit: 5/1m, shadow: yes }", 31, "shadow: expected true or false, found `yes`"),
        ("{ limit: 6.0e1 }", 17, "limit: expected LIMIT/WINDOW, found `6.0e1`"),
        (
            "{ limit: 5/1m, on_store_error: { loc: 0.2 } }",
            39,
            "on_store_error: loc: is not a field here; choose deny, allow or { local: 0.25 }",
        ),
        (
            "{ limit: 5/1m, on_store_error: open }",
            39,
            "on_store_error: `open` is not a policy; choose deny, allow or",
        ),
        ("{ limit: 5/1m, on_store_error: { local: 7 } }", 39, "on_store_error: local: `7` is not a decimal"),
    ]);
    assert_mistake("rules:\n  a b: { limit: 5/1m }\n", "2:3", "rule `a b`: the name has ' '");
}

#[test]
fn every_mistake_of_an_algorithm_names_rule_and_field() {
    assert_mistakes(&[
        (
            "{ limit: 5/1m, algorithm: slidng-log }",
            34,
            "algorithm: `slidng-log` is unknown; did you mean `sliding-log`?",
        ),
        ("{ limit: 5/1m, algorithm: leaky }", 34, "algorithm: `leaky` is unknown; choose sliding-log,"),
        ("{ limit: 5/1m, algorithm: [gcra], buckets: 5 }", 34, "algorithm: expected a name, found a list"),
        ("{ limit: 5/1m, buckets: 60 }", 32, "buckets: is only for sliding-buckets, not for sliding-log"),
        (
            "{ limit: 5/1m, algorithm: gcra, edge: full }",
            46,
            "edge: is only for sliding-buckets, not for gcra",
        ),
        ("{ limit: 5/1m, entries: 64 }", 32, "entries: is only for compact-log, not for sliding-log"),
        (
            "{ limit: 5/1m, algorithm: sliding-buckets, buckets: 4097 }",
            60,
            "buckets: 4097 is outside 1 to 4096",
        ),
        (
            "{ limit: 5/1m, algorithm: sliding-buckets, buckets: 6.5 }",
            60,
            "buckets: expected a whole number, found `6.5`",
        ),
        ("{ limit: 5/1m, algorithm: sliding-buckets, edge: half }", 57, "edge: `half` is unknown"),
        (
            "{ limit: 5/1m, algorithm: sliding-buckets, buckets: 60.0 }",
            60,
            "buckets: expected a whole number, found `60.0`; write digits only",
        ),
    ]);
}

/// Rules with one mistake each: the rule, the column of the mistake, and a part of the error.
fn assert_mistakes(rules: &[(&str, u32, &str)]) {
    for (rule, column, words) in rules {
        let position = format!("2:{column}");
        let found = assert_mistake(&format!("rules:\n  api: {rule}\n"), &position, words);
        assert!(found.contains("rule `api`: ") || words.contains("given twice"), "{rule}: {found}");
    }
}

/// Loads a configuration with one mistake.
pub(crate) fn assert_mistake(config: &str, position: &str, words: &str) -> String {
    let file = file_of("mistake.yaml", config);
    let replayed = run(&["replay", "--config", &file], NOTHING);
    // Long configurations are cut in the message.
    let config: String = config.chars().take(500).collect();
    assert_eq!((replayed.code, replayed.out.as_str()), (2, ""), "{config}");
    let start = format!("error: {file}:{position}: ");
    assert!(replayed.err.starts_with(&start), "{config}\n{}\n{start}", replayed.err);
    assert!(replayed.err.contains(words), "{config}\n{}\n{words}", replayed.err);
    assert_eq!(replayed.err.lines().count(), 1, "{config}\n{}", replayed.err);
    replayed.err
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_file_order() {
    let config = "\
stoer: memory
rules:
  api: { limt: 5/1m, headroom: 7 }
  good: { limit: 5/1m }
  ring:
    limits: [5/1m, x, y]
    buckets: 60
    edge: half
";
    let file = file_of("mistakes.yaml", config);
    let replayed = run(&["replay", "--config", &file], NOTHING);
    let found: Vec<String> = replayed.err.lines().map(|line| line.replace(&file, "FILE")).collect();
    let starts = [
        "error: FILE:1:1: stoer: is not a field; did you mean `store`?",
        "error: FILE:3:3: rule `api`: limit: is missing",
        "error: FILE:3:10: rule `api`: limt: is not a field of a rule; did you mean `limit`?",
        "error: FILE:3:32: rule `api`: headroom: `7` is not a decimal",
        "error: FILE:6:20: rule `ring`: limits[1]: `x` is not a rate",
        "error: FILE:6:23: rule `ring`: limits[2]: `y` is not a rate",
        "error: FILE:7:14: rule `ring`: buckets: is only for sliding-buckets",
        "error: FILE:8:11: rule `ring`: edge: is only for sliding-buckets",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (line, start) in found.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
}

#[test]
fn errors_name_files_that_cannot_be_read() {
    let missing = run(&["replay", "--config", "no-such-file.yaml"], NOTHING);
    assert_eq!(missing.code, 2);
    assert!(missing.err.starts_with("error: no-such-file.yaml: cannot be read: "), "{}", missing.err);
}

#[test]
fn the_error_of_invalid_utf8_has_its_position() {
    let file = file_of("latin1.yaml", b"rules:\n  k\xc3\xa4se: k\xe4se\n");
    let replayed = run(&["replay", "--config", &file], NOTHING);
    assert_eq!(replayed.err, format!("error: {file}:2:10: is not UTF-8; save it as UTF-8\n"));
}

#[test]
fn the_store_flag_takes_precedence_over_the_file() {
    let file = file_of("redis.yaml", "rules: { api: { limit: 5/1m } }\nstore: redis://localhost\n");
    assert_eq!(run(&["replay", "--config", &file], NOTHING).code, 2);
    assert_eq!(run(&["replay", "--config", &file, "--store", "memory"], NOTHING).code, 0);
}

#[test]
fn every_mistake_of_a_setting_has_its_position_and_remedy() {
    for (setting, column, words) in [
        ("http: 8080", 7, "http: `8080` is not an address and a port; write for example 127.0.0.1:8080"),
        ("http: localhost:8080", 7, "http: `localhost:8080` is not an address"),
        ("http: [a]", 7, "http: expected a text, found a list; write `http: 127.0.0.1:8080`"),
        ("deadline: 50", 11, "deadline: `50` is not a duration; write a number and ms, s, m, h or d"),
        ("deadline: 0s", 11, "deadline: `0s` is outside 1ms to 600s"),
        ("memory_budget: 5GB", 16, "memory_budget: `5GB` is not a number of bytes"),
        ("memory_budget: 5", 16, "memory_budget: `5` is outside 1MiB to"),
        ("memory_budget:", 14, "memory_budget: expected a text, found nothing"),
        ("token: hunter2hunter2hunter2", 1, "token: is a secret and does not belong in this file"),
        ("token_file: no-such-file", 13, "token_file: `no-such-file` cannot be read"),
        ("hosts: [a, 'b/c']", 12, "hosts: `b/c` is not the name of a host"),
        ("hosts: [{}]", 9, "hosts: expected a text, found a mapping"),
        ("headers: [draft-11, githbu]", 21, "headers: `githbu` is unknown; did you mean `github`?"),
        ("headers: draft-7", 10, "headers: `draft-7` is unknown; did you mean `draft-11`?"),
        ("bounds: 5", 9, "bounds: expected fields, found `5`"),
        (
            "bounds: { bodybytes: 5 }",
            11,
            "bounds: bodybytes: is not a field here; did you mean `body_bytes`?",
        ),
        ("bounds: { connections: 0 }", 24, "bounds.connections: 0 is outside 1 to 1000000"),
        ("bounds: { idle_time: 2d }", 22, "bounds.idle_time: `2d` is outside 1ms to 3600s"),
        ("htpp: 127.0.0.1:80", 1, "htpp: is not a field; did you mean `http`?"),
        ("grpc: 127.0.0.1:81", 1, "grpc: is not supported by this version; remove it"),
        ("rate-limiter: 5", 15, "rate-limiter: expected fields, found `5`"),
        ("rate-limiter: { window-size: 60 }", 1, "rate-limiter: max-requests: is missing"),
        (
            "rate-limiter: { window-size: 60, max-requests: 0 }",
            48,
            "rate-limiter: max-requests: 0 is outside 1 to",
        ),
        (
            "rate-limiter: { window-size: 0, max-requests: 5 }",
            30,
            "rate-limiter: window-size: 0 is outside 1 to",
        ),
        (
            "rate-limiter: { window-size: 1m, max-requests: 5 }",
            30,
            "window-size: expected a whole number, found `1m`",
        ),
        (
            "rate-limiter: { use-algo: slidng-log, window-size: 60, max-requests: 5 }",
            27,
            "use-algo: `slidng-log` is unknown; did you mean `sliding-log`?",
        ),
        (
            "rate-limiter: { window-size: 60, max-requests: 5, on_store_error: open }",
            67,
            "rate-limiter: on_store_error: `open` is not a policy; choose deny, allow or",
        ),
        (
            "rate-limiter: { max-request: 5, window-size: 60, max-requests: 5 }",
            17,
            "max-request: is not a field here; did you mean `max-requests`?",
        ),
    ] {
        let found = assert_mistake(
            &format!("rules: {{ a: {{ limit: 5/1m }} }}\n{setting}\n"),
            &format!("2:{column}"),
            words,
        );
        assert!(!found.contains("hunter2"), "{found}");
    }
    let twice = "rules: { default: { limit: 5/1m } }\nrate-limiter: { window-size: 60, max-requests: 5 }\n";
    assert_mistake(twice, "2:1", "rate-limiter: means rule `default`, which `rules` has as well");
}

#[test]
fn the_small_service_form_defines_rule_default() {
    let config = "rate-limiter: { use-algo: sliding-window-algo, window-size: 60, max-requests: 5 }\n";
    let file = file_of("small.yaml", config);
    let line = r#"{"at_us":1,"op":"inspect","rule":"default","key":"alice"}"#;
    let replayed = run(&["replay", "--config", &file], line);
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""));
    let limit = &replayed.answers()[0]["limits"][0];
    assert_eq!((&limit["limit"], &limit["window_us"]), (&5.into(), &(60 * SECOND_US).into()));
}

/// The "billion laughs" attack: one line of YAML can expand to a billion values.
#[test]
fn exponential_aliases_are_refused() {
    let level = |level: usize| {
        let below = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
        format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "))
    };
    let bomb: String = (0..9).map(level).collect();
    let file = file_of("bomb.yaml", bomb);
    let replayed = run(&["replay", "--config", &file], NOTHING);
    assert_eq!(replayed.code, 2);
    assert!(replayed.err.contains("values; split the file or remove rules"), "{}", replayed.err);
    assert!(replayed.err.len() < 1_000, "{}", replayed.err);
}
