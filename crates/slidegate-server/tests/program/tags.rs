//! `--tag` and `"tag"`: the key is counted apart, wherever states live.

use serde_json::Value;

use crate::program::{Run, file_of, fresh, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

const NOW_US: u64 = 1_745_000_145_000_000;

/// Charges, peeks and resets a key with and without a tag in the store at that URL.
fn counts_apart(url: &str, request: &[&str]) {
    let ask = |verb: &str, tag: &[&str]| run(&[&[verb, "alice", "--store", url], request, tag].concat(), "");
    let tag = ["--tag", "team:7"];
    let left = |answer: Run| {
        let words = answer.out.split(' ').nth(1).map(str::to_owned);
        words.unwrap_or_else(|| panic!("{url}: {answer:?}"))
    };
    assert_eq!(left(ask("check", &["--cost", "3"])), "2", "{url}");
    assert_eq!(left(ask("check", &tag)), "4", "{url}");
    assert_eq!((left(ask("peek", &[])), left(ask("peek", &tag))), ("2".into(), "4".into()), "{url}");
    assert_eq!(ask("reset", &tag).out, "reset: 1 unit removed\n", "{url}");
    assert_eq!(left(ask("peek", &[])), "2", "{url}");
    let ran = run(&[&["run", "alice", "--store", url], request, &tag, &["--", "true"]].concat(), "");
    assert_eq!((ran.code, left(ask("peek", &tag))), (0, "4".into()), "{url}: {}", ran.err);
}

#[test]
fn commands_count_a_tag_apart_in_a_file_a_redis_and_a_server() {
    let inline = ["--limit", "5/1h"];
    counts_apart(&format!("sqlite:{}/state.db", fresh("states").display()), &inline);

    let redis = RedisServer::start();
    counts_apart(&redis.url(), &inline);
    let names = redis.command(&["KEYS", "*"]);
    let names = format!("{names:?}");
    assert!(names.contains("sg:{team:7}{alice}:sliding-log/3600s"), "{names}");

    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1h } }\n");
    let server = ServerProcess::start(&["--config", &config]);
    counts_apart(&format!("http://{}", server.address), &["--rule", "api"]);
}

#[test]
fn a_bad_tag_is_refused_before_any_store_is_opened() {
    for (tag, words) in [("", "tag: is empty"), ("a\nb", "tag: has the character '\\n' at byte 2")] {
        let refused = run(&["check", "alice", "--limit", "5/1m", "--tag", tag], "");
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains(words), "{}", refused.err);
    }
}

#[test]
fn a_trace_has_tags() {
    let line = |at: u64, op: &str, rest: &str| format!(r#"{{"at_us":{},"op":"{op}",{rest}}}"#, NOW_US + at);
    let rule = r#""rule":{"limit":5,"window":"60s"},"key":"alice""#;
    let lines = [
        line(0, "check", &format!(r#""charges":[{{{rule},"cost":2}},{{{rule},"tag":"t","cost":3}}]"#)),
        line(1, "check", &format!(r#""charges":[{{{rule},"tag":"t","cost":3}}]"#)),
        line(2, "credit", &format!(r#"{rule},"tag":"t","units":1"#)),
        line(3, "inspect", &format!(r#"{rule},"tag":"t""#)),
        line(4, "inspect", rule),
        line(5, "refund", r##""receipt":"#1""##),
        line(6, "reset", &format!(r#"{rule},"tag":"t""#)),
        line(7, "check", &format!(r#""charges":[{{{rule},"tag":""}}]"#)),
    ];
    let answers = run(&["replay"], lines.join("\n")).answers();
    let checks: Vec<(&Value, &Value)> = answers[0]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (&check["tag"], &check["used"]))
        .collect();
    assert_eq!(checks, [(&Value::Null, &2.into()), (&"t".into(), &3.into())]);
    assert_eq!((&answers[1]["allowed"], &answers[1]["used"]), (&false.into(), &3.into()));
    assert_eq!(answers[2]["units"], 1);
    assert_eq!((&answers[3]["tag"], &answers[3]["limits"][0]["used"]), (&"t".into(), &2.into()));
    assert_eq!((answers[4].get("tag"), &answers[4]["limits"][0]["used"]), (None, &2.into()));
    assert_eq!(answers[5]["units"], 4, "what is left of both");
    assert_eq!(answers[6]["applied"], false);
    assert!(answers[7]["message"].as_str().unwrap().contains("tag: is empty"), "{}", answers[7]);
}
