//! Tags over HTTP: states of their own, in every verb.

use serde_json::{Value, json};

use super::test_server::TestServer;

const RULES: &str = "rules: { api: { limit: 10/1m } }";

fn used(server: &TestServer, path: &str) -> Value {
    server.ask("GET", path, "").json()["limits"][0]["used"].clone()
}

/// The toy version reads the tag, checks it and drops it.
#[test]
fn a_key_with_a_tag_is_charged_reset_and_shown_apart() {
    let server = TestServer::start(RULES);
    let check =
        |fields: &str| server.post("/v1/check", &format!(r#"{{"rule":"api","key":"alice"{fields}}}"#));
    assert_eq!(check("").json()["used"], 1);
    assert_eq!(check(r#","tag":"team:7","cost":3"#).json()["used"], 3);
    let tagged = check(r#","tag":"team:7""#).json();
    assert_eq!(tagged["used"], 4);

    let path = "/v1/keys/api/alice?tag=team%3A7";
    assert_eq!((used(&server, "/v1/keys/api/alice"), used(&server, path)), (json!(1), json!(4)));
    assert_eq!(server.ask("GET", path, "").json()["tag"], "team:7");
    assert!(server.ask("GET", "/v1/keys/api/alice", "").json().get("tag").is_none());
    let peek = |tag: &str| {
        server.post("/v1/peek", &json!({ "rule": "api", "key": "alice", "tag": tag }).to_string())
    };
    assert_eq!(
        (peek("team:7").json()["used"].clone(), peek("team:8").json()["used"].clone()),
        (json!(4), json!(0))
    );

    let receipt = json!({ "receipt": tagged["receipt"] }).to_string();
    assert_eq!(server.post("/v1/refund", &receipt).body, r#"{"applied":true,"units":1}"#);
    let credit = r#"{"rule":"api","key":"alice","tag":"team:7","units":1}"#;
    assert_eq!(server.post("/v1/credit", credit).body, r#"{"applied":true,"units":1}"#);
    assert_eq!(used(&server, path), 2);
    let reset = r#"{"rule":"api","key":"alice","tag":"team:7"}"#;
    assert_eq!(server.post("/v1/reset", reset).body, r#"{"applied":true,"units":2}"#);
    assert_eq!((used(&server, "/v1/keys/api/alice"), used(&server, path)), (json!(1), json!(0)));
}

#[test]
fn the_tag_of_a_request_is_that_of_the_charges_without_their_own() {
    let server = TestServer::start(RULES);
    let body = r#"{"tag":"t","checks":[{"rule":"api","key":"alice","cost":2},{"rule":"api","key":"alice","tag":"own"}]}"#;
    let answer = server.post("/v1/check", body).json();
    let tags: Vec<_> =
        answer["checks"].as_array().unwrap().iter().map(|check| check["tag"].clone()).collect();
    assert_eq!(tags, ["t", "own"]);
    assert_eq!(used(&server, "/v1/keys/api/alice?tag=t"), 2);
    assert_eq!(used(&server, "/v1/keys/api/alice?tag=own"), 1);
    let batch = r#"{"checks":[{"rule":"api","key":"alice","tag":"t"},{"rule":"api","key":"alice"}]}"#;
    let answers = server.post("/v1/check-batch", batch).json();
    assert_eq!((&answers["answers"][0]["used"], &answers["answers"][1]["used"]), (&json!(3), &json!(1)));
    let explained = server.post("/v1/explain", r#"{"rule":"api","key":"alice","tag":"t"}"#).json();
    assert_eq!(
        (&explained["checks"][0]["tag"], &explained["checks"][0]["limits"][0]["used"]),
        (&json!("t"), &json!(3))
    );
}

#[test]
fn a_bad_tag_names_its_field_and_the_remedy() {
    let server = TestServer::start(RULES);
    let long = "t".repeat(508);
    let long = format!(r#"{{"rule":"api","key":"alice","tag":"{long}"}}"#);
    for (body, field, words) in [
        (r#"{"rule":"api","key":"alice","tag":""}"#, "/tag", "leave it out"),
        (r#"{"checks":[{"rule":"api","key":"alice"}],"tag":"a\u0000"}"#, "/tag", "percent-encode"),
        (
            r#"{"checks":[{"rule":"api","key":"a"},{"rule":"api","key":"a","tag":"\u001f"}]}"#,
            "/checks/1/tag",
            "percent-encode",
        ),
        (r#"{"rule":"api","key":"\u001ft\u001falice"}"#, "/key", "percent-encode"),
        (&long, "/tag", "use a hash of it"),
    ] {
        let answer = server.post("/v1/check", body);
        let json = answer.json();
        assert_eq!((answer.status, json["field"].as_str()), (400, Some(field)), "{json}");
        assert!(json["remedy"].as_str().unwrap().contains(words), "{json}");
    }
    assert_eq!(server.ask("GET", "/v1/keys/api/alice?tag=", "").status, 400);
    assert_eq!(server.ask("GET", "/v1/keys/api/alice?tag=%zz", "").status, 400);
    assert_eq!(used(&server, "/v1/keys/api/alice"), 0);
}
