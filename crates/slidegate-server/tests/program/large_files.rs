//! Configurations with very many rules.

use std::fmt::Write;

use crate::config_files::assert_mistake;
use crate::program::{file_of, replay, run};

/// A configuration of `count` equal rules.
fn many_rules(count: usize, rule: &str) -> String {
    (0..count).fold("rules:\n".to_owned(), |mut config, number| {
        writeln!(config, "  rule-{number:05}: {rule}").expect("a String takes everything");
        config
    })
}

/// An error that listed all sixty thousand rules would make the answers to three hundred unknown names 195 MB.
#[test]
fn the_error_of_an_unknown_rule_is_short_with_many_rules() {
    let line = r#"{"at_us":1,"op":"inspect","rule":"rule-600","key":"a"}"#.to_owned();
    let run = replay(&many_rules(6_000, "{ limit: 5/1m }"), &vec![line; 300]);
    let remedy = "choose from: rule-00000, rule-00001, rule-00002, rule-00003, rule-00004 and 5995 more";
    let answers = run.answers();
    assert_eq!((run.code, answers.len()), (2, 300));
    for answer in answers {
        assert_eq!(answer["message"], format!("rule: `rule-600` is unknown; {remedy}"));
    }
}

/// 250,000 values are enough for sixty thousand rules. The error for a larger file is not "is not YAML".
#[test]
fn the_error_of_a_file_beyond_a_limit_names_the_limit() {
    let remedy = "has more than 250000 values; split the file or remove rules";
    assert_mistake(&many_rules(63_000, "{ limit: 5/1m }"), "62501:15", remedy);
    let nested = format!("rules: {}{}\n", "[".repeat(70), "]".repeat(70));
    assert_mistake(&nested, "1:71", "is nested more than 64 deep; a rule needs 4 levels, remove the others");
    let references = "*a, ".repeat(50_001);
    let aliased = format!("rules:\n  a: &a {{ limit: 5/1m }}\n  b: [{references}]\n");
    assert_mistake(&aliased, "3:200007", "has more than 50000 aliases; write some of the values out");
    let doubled = (1..30).fold("a0: &a0 [x, x]\n".to_owned(), |mut config, n| {
        writeln!(config, "a{n}: &a{n} [*a{m}, *a{m}]", m = n - 1).expect("a String takes everything");
        config
    });
    assert_mistake(&doubled, "16:18", remedy);
}

/// Shared defaults are not an attack.
#[test]
fn one_anchor_may_serve_every_rule() {
    let rules = many_rules(300, "{ <<: *defaults }");
    let config = rules.replacen("{ <<: *defaults }", "&defaults { limit: 5/1m }", 1);
    let replayed = run(&["replay", "--config", &file_of("defaults.yaml", config)], "");
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""));
}
