//! Inline rules: when they are allowed, and the errors of invalid ones.

use crate::malformed_lines::assert_answers;
use crate::program::{file_of, run};

#[test]
fn a_configuration_must_allow_inline_rules() {
    let inline = r#"{"at_us":1,"op":"inspect","rule":{"limit":5,"window":"1m"},"key":"a"}"#;
    let lines = [inline.to_owned(), inline.replace("inspect", "reset")];
    for (consent, code) in [("inline_rules: true\n", 0), ("inline_rules: false\n", 2), ("", 2)] {
        let file = file_of("consent.yaml", format!("{consent}rules: {{ api: {{ limit: 5/1m }} }}\n"));
        let run = run(&["replay", "--config", &file], lines.join("\n"));
        assert_eq!(run.code, code, "{consent}{run:?}");
        for answer in run.answers().iter().filter(|_| code == 2) {
            assert_eq!(answer["error"], "inline-rule");
            let remedy = format!(
                "rule: inline rules are not allowed; add `inline_rules: true` to {file} or name a rule of it"
            );
            assert_eq!(answer["message"], remedy);
        }
    }
    assert_eq!(run(&["replay"], inline).code, 0, "without a configuration they are allowed");
}

#[test]
fn invalid_inline_rules_are_refused() {
    let line =
        |rule: &str| format!(r#"{{"at_us":1,"op":"check","charges":[{{"rule":{{{rule}}},"key":"a"}}]}}"#);
    let with = |more: &str| line(&format!(r#""limit":5,"window":"60s",{more}"#));
    assert_answers(&[
        (&line(r#""window":"60s""#), "malformed", "charges[0].rule.limit: is missing"),
        (&line(r#""limit":5"#), "malformed", "charges[0].rule.window: is missing"),
        (
            &line(r#""limit":"5","window":"60s""#),
            "malformed",
            "charges[0].rule.limit: expected a whole number from 1 to 1000000000000, in digits only, found \"5\"",
        ),
        (
            &line(r#""limit":"5""#),
            "inline-rule",
            "charges[0].rule.limit: `5` is not a rate; write LIMIT/WINDOW",
        ),
        (
            &line(r#""limit":"5/500d""#),
            "inline-rule",
            "charges[0].rule.limit: the window `500d` is outside 1 ms to 400 d",
        ),
        (
            &line(r#""limit":"60/1m","window":"1m""#),
            "inline-rule",
            "charges[0].rule.window: cannot be combined with a limit that is a rate; remove it, or write the limit as a number",
        ),
        (
            &line(r#""limit":-5"#),
            "malformed",
            "charges[0].rule.limit: expected a whole number from 1 to 1000000000000, in digits only, or a rate",
        ),
        (&line(r#""limit":5,"window":60"#), "malformed", "charges[0].rule.window: expected a text"),
        (&line(r#""limit":0,"window":"60s""#), "inline-rule", "charges[0].rule.limit: 0 units are outside"),
        (
            &line(r#""limit":5,"window":"a minute""#),
            "inline-rule",
            "charges[0].rule.window: `a minute` is not",
        ),
        (
            &line(r#""limit":5,"window":"9999hours""#),
            "inline-rule",
            "charges[0].rule.window: `9999hours` is outside 1 ms to 400 d",
        ),
        (
            &with(r#""algorithm":"slidng-log""#),
            "inline-rule",
            "charges[0].rule.algorithm: `slidng-log` is unknown; did you mean `sliding-log`?",
        ),
        (&with(r#""algorithm":"leaky""#), "inline-rule", "charges[0].rule.algorithm: `leaky` is unknown"),
        (&with(r#""buckets":60"#), "inline-rule", "charges[0].rule.buckets: is only for sliding-buckets"),
        (
            &with(r#""algorithm":"sliding-buckets","edge":"half""#),
            "inline-rule",
            "charges[0].rule.edge: `half` is unknown",
        ),
        (
            &with(r#""algorithm":"compact-log","entries":3"#),
            "inline-rule",
            "charges[0].rule.entries: 3 is outside",
        ),
        (&with(r#""headroom":0.05"#), "inline-rule", "charges[0].rule.headroom: is not for inline rules"),
        (&with(r#""algoritm":"gcra""#), "malformed", "did you mean `algorithm`?"),
    ]);
}

#[test]
fn an_inline_rule_may_be_written_as_a_rate() {
    let line =
        |rule: &str| format!(r#"{{"at_us":1,"op":"check","charges":[{{"rule":{{{rule}}},"key":"a"}}]}}"#);
    let lines = [
        line(r#""limit":60,"window":"1m","algorithm":"compact-log","entries":8"#),
        line(r#""limit":"60/minute","algorithm":"compact-log","entries":8"#),
        line(r#""limit":"60/1m""#),
    ];
    let run = run(&["replay"], lines.join("\n"));
    assert_eq!(run.code, 0, "{run:?}");
    let answers = run.answers();
    for (answer, rule, used) in [
        (&answers[0], "compact-log/60s", 1),
        (&answers[1], "compact-log/60s", 2),
        (&answers[2], "sliding-log/60s", 1),
    ] {
        assert_eq!((answer["rule"].as_str(), answer["used"].as_u64()), (Some(rule), Some(used)), "{answer}");
        assert_eq!(answer["limit"], 60);
    }
}

#[test]
fn charges_of_inline_rules_with_one_name_must_have_one_limit() {
    let charge = |buckets: u64| {
        let rule =
            format!(r#"{{"limit":5,"window":"60s","algorithm":"sliding-buckets","buckets":{buckets}}}"#);
        format!(r#"{{"rule":{rule},"key":"a"}}"#)
    };
    let line = format!(r#"{{"at_us":1,"op":"check","charges":[{},{}]}}"#, charge(60), charge(30));
    assert_answers(&[(&line, "charges", "`sliding-buckets/60s` differ in window, algorithm or buckets")]);
}
