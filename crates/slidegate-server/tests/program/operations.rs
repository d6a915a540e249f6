//! Sequences of charges, refunds, settlements, credits and resets in a trace.

use serde_json::{Value, json};

use crate::program::{replay, run};

const ALGORITHMS: [&str; 6] =
    ["sliding-log", "compact-log", "sliding-buckets", "sliding-counter", "fixed-window", "gcra"];
const NOW_US: u64 = 1_745_000_145_000_000;

/// Builds a trace on one rule and key.
struct Trace {
    rule: Value,
    lines: Vec<String>,
}

impl Trace {
    /// 5 per minute.
    fn of(algorithm: &str) -> Self {
        let rule = json!({ "limit": 5, "window": "60s", "algorithm": algorithm });
        Self { rule, lines: Vec::new() }
    }

    fn check(mut self, at_us: u64, cost: u64) -> Self {
        let charge = json!({ "rule": self.rule, "key": "alice", "cost": cost });
        self.lines.push(json!({ "at_us": at_us, "op": "check", "charges": [charge] }).to_string());
        self
    }

    /// An operation on the rule and key, with one more field if given.
    fn on_key(mut self, at_us: u64, op: &str, own: Option<(&str, u64)>) -> Self {
        let mut line = json!({ "at_us": at_us, "op": op, "rule": self.rule, "key": "alice" });
        if let Some((field, value)) = own {
            line[field] = value.into();
        }
        self.lines.push(line.to_string());
        self
    }

    fn inspect(self, at_us: u64) -> Self {
        self.on_key(at_us, "inspect", None)
    }

    fn refund(mut self, at_us: u64, receipt: &str) -> Self {
        self.lines.push(json!({ "at_us": at_us, "op": "refund", "receipt": receipt }).to_string());
        self
    }

    fn settle(mut self, at_us: u64, receipt: &str, actual: u64) -> Self {
        let line = json!({ "at_us": at_us, "op": "settle", "receipt": receipt, "actual": actual });
        self.lines.push(line.to_string());
        self
    }

    /// Replays, and abbreviates each answer: `+3` applied, `-` not applied, `=2` used after it.
    fn abbreviated(self) -> Vec<String> {
        let replayed = run(&["replay"], self.lines.join("\n"));
        assert_eq!(replayed.code, 0, "{replayed:?}");
        let tell = |answer: &Value| match (&answer["applied"], &answer["limits"][0]["used"], &answer["used"])
        {
            (Value::Bool(true), ..) => format!("+{}", answer["units"]),
            (Value::Bool(false), ..) => format!("-{}", answer["units"]),
            (_, Value::Number(used), _) | (_, _, Value::Number(used)) => format!("={used}"),
            _ => answer.to_string(),
        };
        replayed.answers().iter().map(tell).collect()
    }
}

#[test]
fn a_refund_works_once() {
    for algorithm in ALGORITHMS {
        let trace = Trace::of(algorithm).check(NOW_US, 2).check(NOW_US, 3);
        let trace = trace.refund(NOW_US, "#2").inspect(NOW_US).refund(NOW_US, "#2").inspect(NOW_US);
        assert_eq!(trace.abbreviated(), ["=2", "=5", "+3", "=2", "-0", "=2"], "{algorithm}");
    }
}

#[test]
fn an_expired_receipt_is_not_applied() {
    for algorithm in ALGORITHMS {
        let later_us = NOW_US + 120_000_000;
        let trace = Trace::of(algorithm).check(NOW_US, 5).check(later_us, 2);
        let trace = trace.refund(later_us, "#1").settle(later_us, "#1", 9).inspect(later_us);
        assert_eq!(trace.abbreviated(), ["=5", "=2", "-0", "-0", "=2"], "{algorithm}");
    }
}

#[test]
fn arguments_of_a_spent_receipt_are_not_checked() {
    for algorithm in ALGORITHMS {
        let trace = Trace::of(algorithm).check(NOW_US, 5).refund(NOW_US, "#1");
        assert_eq!(trace.settle(NOW_US, "#1", 1_000_000).abbreviated(), ["=5", "+5", "-0"], "{algorithm}");
    }
}

#[test]
fn a_settlement_gives_back_or_charges_the_difference() {
    for algorithm in ALGORITHMS {
        let less = Trace::of(algorithm).check(NOW_US, 3).settle(NOW_US, "#1", 1).inspect(NOW_US);
        assert_eq!(less.refund(NOW_US, "#1").abbreviated(), ["=3", "+2", "=1", "-0"], "{algorithm}");
        let more = Trace::of(algorithm).check(NOW_US, 3).settle(NOW_US, "#1", 9).inspect(NOW_US);
        assert_eq!(
            more.abbreviated(),
            ["=3", "+6", "=9"],
            "{algorithm}: the work is done, above the limit or not"
        );
        let same = Trace::of(algorithm).check(NOW_US, 3).settle(NOW_US, "#1", 3).refund(NOW_US, "#1");
        assert_eq!(same.abbreviated(), ["=3", "+0", "-0"], "{algorithm}");
        let none = Trace::of(algorithm).check(NOW_US, 3).settle(NOW_US, "#1", 0).inspect(NOW_US);
        assert_eq!(none.abbreviated(), ["=3", "+3", "=0"], "{algorithm}");
    }
}

#[test]
fn a_credit_gives_back_at_most_what_is_used() {
    for algorithm in ALGORITHMS {
        let credit = |trace: Trace, units: u64| trace.on_key(NOW_US, "credit", Some(("units", units)));
        let trace = credit(Trace::of(algorithm), 2).check(NOW_US, 4);
        let trace = credit(trace, 3).inspect(NOW_US);
        let trace = credit(credit(trace, 9), 1).inspect(NOW_US);
        assert_eq!(trace.abbreviated(), ["-0", "=4", "+3", "=1", "+1", "-0", "=0"], "{algorithm}");
    }
}

#[test]
fn a_reset_removes_the_state_and_voids_its_receipts() {
    for algorithm in ALGORITHMS {
        let reset = |trace: Trace| trace.on_key(NOW_US, "reset", None);
        let trace = reset(reset(Trace::of(algorithm).check(NOW_US, 4))).inspect(NOW_US);
        let trace = trace.check(NOW_US + 1, 5).refund(NOW_US + 1, "#1").inspect(NOW_US + 1);
        assert_eq!(trace.abbreviated(), ["=4", "+4", "-0", "=0", "=5", "-0", "=5"], "{algorithm}");
    }
}

#[test]
fn never_is_an_answer_and_not_a_failure() {
    let config = "rules:\n  search: { limits: [20/1m, 8/1h] }\n";
    let line = |op: &str, costs: &[u64]| {
        let charges: Vec<_> =
            costs.iter().map(|cost| json!({ "rule": "search", "key": "a", "cost": cost })).collect();
        json!({ "at_us": NOW_US, "op": op, "charges": charges }).to_string()
    };
    let replayed = replay(
        config,
        &[line("check", &[9]), line("peek", &[9]), line("check", &[4, 5]), line("check", &[8])],
    );
    assert_eq!((replayed.code, replayed.err.as_str()), (0, ""));
    let answers = replayed.answers();
    let alone = "cost: 9 units can never pass rule `search`, whose limit is 8;";
    let summed = "charges[0].cost: with the other charges of key `a`, 9 units can never pass rule `search`,";
    for (answer, start) in answers.iter().zip([alone, alone, summed]) {
        assert_eq!(answer["error"], "never");
        let message = answer["message"].as_str().unwrap();
        assert!(message.starts_with(start), "{message}");
    }
    assert_eq!(
        (&answers[3]["allowed"], &answers[3]["used"]),
        (&json!(true), &json!(8)),
        "nothing was charged before"
    );
}

#[test]
fn several_charges_are_made_all_or_none() {
    let config = "rules:\n  quota: { limit: 100/1d }\n  search: { limits: [3/10m, 20/1d] }\n";
    let search = json!([
        { "rule": "quota", "key": "key1", "cost": 10 },
        { "rule": "search", "key": "key1", "cost": 2 },
    ]);
    let line = |op: &str| json!({ "at_us": NOW_US, "op": op, "charges": search }).to_string();
    let refund = json!({ "at_us": NOW_US, "op": "refund", "receipt": "#2", "rule": "search" }).to_string();
    let inspect =
        |rule: &str| json!({ "at_us": NOW_US, "op": "inspect", "rule": rule, "key": "key1" }).to_string();
    let lines = [
        line("peek"),
        line("check"),
        line("check"),
        inspect("quota"),
        inspect("search"),
        refund,
        inspect("quota"),
    ];
    let replayed = replay(config, &lines);
    let answers: Vec<&str> = replayed.out.lines().collect();
    let expected = [
        r#"{"line":1,"allowed":true,"rule":"search","limit":3,"used":0,"remaining":3,"retry_after_us":0,"reset_after_us":0,"checks":[{"rule":"quota","key":"key1","allowed":true,"used":0,"remaining":100,"retry_after_us":0},{"rule":"search","key":"key1","allowed":true,"used":0,"remaining":3,"retry_after_us":0}]}"#,
        r#"{"line":2,"allowed":true,"rule":"search","limit":3,"used":2,"remaining":1,"retry_after_us":0,"reset_after_us":86400000000,"checks":[{"rule":"quota","key":"key1","allowed":true,"used":10,"remaining":90,"retry_after_us":0},{"rule":"search","key":"key1","allowed":true,"used":2,"remaining":1,"retry_after_us":0}]}"#,
        r#"{"line":3,"allowed":false,"rule":"search","limit":3,"used":2,"remaining":1,"retry_after_us":600000000,"reset_after_us":86400000000,"checks":[{"rule":"quota","key":"key1","allowed":true,"used":10,"remaining":90,"retry_after_us":0},{"rule":"search","key":"key1","allowed":false,"used":2,"remaining":1,"retry_after_us":600000000}]}"#,
        r#"{"line":4,"rule":"quota","key":"key1","limits":[{"limit":100,"window_us":86400000000,"used":10,"remaining":90,"reset_after_us":86400000000}]}"#,
        r#"{"line":5,"rule":"search","key":"key1","limits":[{"limit":3,"window_us":600000000,"used":2,"remaining":1,"reset_after_us":600000000},{"limit":20,"window_us":86400000000,"used":2,"remaining":18,"reset_after_us":86400000000}]}"#,
        r#"{"line":6,"applied":true,"units":12}"#,
        r#"{"line":7,"rule":"quota","key":"key1","limits":[{"limit":100,"window_us":86400000000,"used":0,"remaining":100,"reset_after_us":0}]}"#,
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert_eq!(*answer, expected);
    }
    assert_eq!(answers.len(), expected.len());
}

#[test]
fn a_shadow_rule_counts_and_never_refuses() {
    let config = "rules:\n  waf: { limit: 2/1m, shadow: true }\n";
    let line = |cost: u64| {
        json!({ "at_us": NOW_US, "op": "check", "charges": [{ "rule": "waf", "key": "a", "cost": cost }] })
            .to_string()
    };
    let refund = json!({ "at_us": NOW_US, "op": "refund", "receipt": "#2" }).to_string();
    let replayed = replay(config, &[line(2), line(1), refund]);
    let answers = replayed.answers();
    assert_eq!((&answers[1]["allowed"], &answers[1]["checks"][0]["allowed"]), (&json!(true), &json!(false)));
    assert_eq!(answers[1]["used"], 2, "a charge that it would have denied is not made");
    assert_eq!(answers[2]["error"], "receipt");
    assert!(answers[2]["message"].as_str().unwrap().contains("line 2 was not charged"));
}

#[test]
fn sixty_four_charges_are_one_admission() {
    let charges: Vec<_> = (0..64)
        .map(|key| json!({ "rule": { "limit": 1, "window": "1m" }, "key": format!("k{key}") }))
        .collect();
    let line = json!({ "at_us": NOW_US, "op": "check", "charges": charges }).to_string();
    let replayed = run(&["replay"], format!("{line}\n{line}"));
    let answers = replayed.answers();
    assert_eq!((&answers[0]["allowed"], &answers[1]["allowed"]), (&json!(true), &json!(false)));
    assert_eq!(answers[0]["checks"].as_array().unwrap().len(), 64);
    assert_eq!(answers[1]["checks"][63]["key"], "k63");
}
