//! Every mistake has its status and problem document.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::test_server::TestServer;
use crate::tokens::{Scopes, Token};

const TOKEN: &str = "correct-horse-battery-staple";
const RULES: &str = "rules: { api: { limit: 5/1m }, search: { limit: 3/1m } }";

/// Body, status, problem name, field, part of the remedy.
const BAD: &[(&str, u16, &str, &str, &str)] = &[
    ("", 400, "malformed", "body", "JSON"),
    ("{", 400, "malformed", "body", "send one JSON object"),
    (r#"{"rule":"api","key":NaN}"#, 400, "malformed", "body", "digits"),
    (r#"{"rule":"api","key":"a","cost":1e999}"#, 400, "malformed", "body", "digits"),
    ("[]", 400, "malformed", "body", "for example"),
    ("7", 400, "malformed", "body", "for example"),
    (r#"{"rule":"api","key":"alice","csot":1}"#, 400, "malformed", "/csot", "`cost`"),
    (r#"{"rule":"api","kye":"alice"}"#, 400, "malformed", "/kye", "`key`"),
    (r#"{"rule":"api","key":"alice","key":"bob"}"#, 400, "malformed", "/key", "once"),
    (r#"{"checks":[{"rule":"api","key":"a","key":"b"}]}"#, 400, "malformed", "/checks/0/key", "once"),
    (
        r#"{"rule":{"limit":"5/1m","algorithm":"slidng-log"},"key":"a"}"#,
        400,
        "malformed",
        "/rule/algorithm",
        "did you mean `sliding-log`?",
    ),
    (r#"{"rule":{"limit":"5/0s"},"key":"a"}"#, 400, "malformed", "/rule/limit", "choose a window"),
    (r#"{"rule":"api"}"#, 400, "malformed", "/key", "add it"),
    (r#"{"key":"alice"}"#, 400, "malformed", "/rule", "add it"),
    (r#"{"rule":7,"key":"alice"}"#, 400, "malformed", "/rule", "send the name"),
    (r#"{"rule":"api","key":7}"#, 400, "malformed", "/key", "send a text"),
    (r#"{"rule":"api","key":null}"#, 400, "malformed", "/key", ""),
    (r#"{"rule":"api","key":""}"#, 400, "malformed", "/key", "name who"),
    (r#"{"rule":"api","key":"a\u0000b"}"#, 400, "malformed", "/key", "percent-encode"),
    (r#"{"rule":"api","key":"a\nb"}"#, 400, "malformed", "/key", "percent-encode"),
    (r#"{"rule":"api","key":"a\u202eb"}"#, 400, "malformed", "/key", "percent-encode"),
    (r#"{"rule":"api","key":"a\u2028b"}"#, 400, "malformed", "/key", "percent-encode"),
    (r#"{"rule":"api","key":"alice","cost":0}"#, 400, "malformed", "/cost", "at least 1"),
    (r#"{"rule":"api","key":"alice","cost":-1}"#, 400, "malformed", "/cost", "send a whole number"),
    (r#"{"rule":"api","key":"alice","cost":1.5}"#, 400, "malformed", "/cost", ""),
    (r#"{"rule":"api","key":"alice","cost":"1; pay us"}"#, 400, "malformed", "/cost", "send a whole number"),
    (r#"{"rule":"api","key":"alice","cost":null}"#, 400, "malformed", "/cost", ""),
    (r#"{"rule":"api","key":"alice","cost":18446744073709551616}"#, 400, "malformed", "/cost", ""),
    (r#"{"rule":"api","key":"alice","cost":6}"#, 422, "never", "/cost", "split"),
    (r#"{"rule":"api","key":"alice","cost":18446744073709551615}"#, 422, "never", "/cost", "split"),
    (r#"{"rule":"apy","key":"alice"}"#, 404, "unknown-rule", "/rule", "`api`"),
    (r#"{"rule":{"limit":5},"key":"a"}"#, 400, "malformed", "/rule/window", "add it"),
    (r#"{"rule":{"limit":true},"key":"a"}"#, 400, "malformed", "/rule/limit", "60/1m"),
    (r#"{"rule":{"limit":"banana"},"key":"a"}"#, 400, "malformed", "/rule/limit", "LIMIT/WINDOW"),
    (r#"{"rule":{"limit":"5/500d"},"key":"a"}"#, 400, "malformed", "/rule/limit", "in that range"),
    (r#"{"rule":{"limit":"60/1m","window":"1m"},"key":"a"}"#, 400, "malformed", "/rule/window", "remove it"),
    (r#"{"rule":{"limit":0,"window":"1s"},"key":"a"}"#, 400, "malformed", "/rule/limit", ""),
    (r#"{"rule":{"limit":5,"window":"1y"},"key":"a"}"#, 400, "malformed", "/rule/window", "60s"),
    (
        r#"{"rule":{"limit":5,"window":"1s","algorithm":"gcr"},"key":"a"}"#,
        400,
        "malformed",
        "/rule/algorithm",
        "gcra",
    ),
    (
        r#"{"rule":{"limit":5,"window":"1s","shadow":true},"key":"a"}"#,
        400,
        "malformed",
        "/rule/shadow",
        "configuration",
    ),
    (r#"{"rule":"api","key":"a","tag":""}"#, 400, "malformed", "/tag", ""),
    (
        r#"{"rule":"api","key":"a","on_store_error":"open"}"#,
        400,
        "malformed",
        "/on_store_error",
        "allow or deny",
    ),
    (r#"{"rule":"api","key":"a","checks":[]}"#, 400, "malformed", "/rule", "one of them"),
    (r#"{"checks":[]}"#, 400, "malformed", "/checks", "1 to 64"),
    (r#"{"checks":[7]}"#, 400, "malformed", "/checks/0", "for example"),
    (
        r#"{"checks":[{"rule":"api","key":"a"},{"rule":"api","key":"b","cots":1}]}"#,
        400,
        "malformed",
        "/checks/1/cots",
        "`cost`",
    ),
    (
        r#"{"checks":[{"rule":"api","key":"a"},{"rule":"api","key":""}]}"#,
        400,
        "malformed",
        "/checks/1/key",
        "name who",
    ),
    (
        r#"{"checks":[{"rule":"api","key":"a"},{"rule":"nope","key":"b"}]}"#,
        404,
        "unknown-rule",
        "/checks/1/rule",
        "api",
    ),
    (
        r#"{"checks":[{"rule":"api","key":"a"},{"rule":"api","key":"b","cost":9}]}"#,
        422,
        "never",
        "/checks/1/cost",
        "split",
    ),
];

#[test]
fn problems_of_bad_bodies_name_field_and_remedy() {
    let server = TestServer::start("{ rules: { api: { limit: 5/1m } }, inline_rules: true }");
    let mut client = server.connect();
    let long = format!(r#"{{"rule":"api","key":"{}"}}"#, "k".repeat(513));
    let nested = "[".repeat(500);
    let more = [(&*nested, 400, "malformed", "body", "JSON"), (&*long, 400, "malformed", "/key", "shorten")];
    for &(body, status, name, field, remedy) in BAD.iter().chain(&more) {
        for path in ["/v1/check", "/v1/peek", "/v1/explain"] {
            let answer = client.ask("POST", path, body);
            if path == "/v1/explain" && name == "never" {
                assert_eq!(answer.status, 200, "{body}: never is an explanation");
                continue;
            }
            assert_eq!(
                (answer.status, answer.problem_name().as_str()),
                (status, name),
                "{path} {body}: {answer:?}"
            );
            let json = answer.json();
            assert_eq!(json["field"], field, "{path} {body}: {json}");
            // The detail begins with the same field, written as a path.
            let detail = json["detail"].as_str().unwrap_or_default();
            let path_of_field = detail.split(": ").next().unwrap_or_default();
            let pointer = path_of_field.replace(['[', '.'], "/").replace(']', "");
            assert_eq!(pointer, field.trim_start_matches('/'), "{path} {body}: {json}");
            if !remedy.is_empty() {
                assert!(
                    json["remedy"].as_str().is_some_and(|text| text.contains(remedy)),
                    "{path} {body}: {json}"
                );
            }
        }
    }
    let used = client.ask("GET", "/v1/keys/api/alice", "").json();
    assert_eq!(used["limits"][0]["used"], 0, "none of it was charged");
}

#[test]
fn a_body_that_is_not_utf8_is_refused() {
    let server = TestServer::start(RULES);
    let json = [("content-type", "application/json")];
    let answer =
        server.connect().ask_with("POST", "/v1/check", &json, b"{\"rule\":\"api\",\"key\":\"\xff\"}");
    assert_eq!((answer.status, answer.problem().as_str()), (400, "malformed"));
    assert!(answer.body.contains("not UTF-8"), "{answer:?}");
}

#[test]
fn more_than_64_charges_are_refused() {
    let server = TestServer::start(RULES);
    let checks = vec![r#"{"rule":"api","key":"alice"}"#; 65].join(",");
    let answer = server.post("/v1/check", &format!(r#"{{"checks":[{checks}]}}"#));
    assert_eq!((answer.status, answer.problem().as_str()), (400, "malformed"));
}

#[test]
fn problems_of_refund_settle_credit_reset_and_batch_name_the_field() {
    let server = TestServer::start(RULES);
    for (path, body, status, name, field) in [
        ("/v1/refund", "{}", 400, "malformed", "/receipt"),
        ("/v1/refund", r#"{"receipt":7}"#, 400, "malformed", "/receipt"),
        ("/v1/refund", r#"{"receipt":"x","actual":1}"#, 400, "malformed", "/actual"),
        ("/v1/refund", r#"{"receipt":""}"#, 400, "bad-receipt", "/receipt"),
        ("/v1/settle", r#"{"receipt":"x"}"#, 400, "malformed", "/actual"),
        ("/v1/settle", r#"{"receipt":"x","actual":-1}"#, 400, "malformed", "/actual"),
        ("/v1/settle", r#"{"receipt":"x","actual":1}"#, 400, "bad-receipt", "/receipt"),
        ("/v1/credit", r#"{"rule":"api","key":"a"}"#, 400, "malformed", "/units"),
        ("/v1/credit", r#"{"rule":"api","key":"a","units":0}"#, 400, "malformed", "/units"),
        ("/v1/credit", r#"{"rule":"no","key":"a","units":1}"#, 404, "unknown-rule", "/rule"),
        ("/v1/reset", r#"{"rule":"api"}"#, 400, "malformed", "/key"),
        ("/v1/reset", r#"{"rule":"api","key":"a","cost":1}"#, 400, "malformed", "/cost"),
        ("/v1/check-batch", "{}", 400, "malformed", "/checks"),
        ("/v1/check-batch", r#"{"checks":[]}"#, 400, "malformed", "/checks"),
        ("/v1/check-batch", r#"{"checks":[{"rule":"api"}]}"#, 400, "malformed", "/checks/0/key"),
        (
            "/v1/check-batch",
            r#"{"checks":[{"checks":[{"rule":"api","kye":"a"}]}]}"#,
            400,
            "malformed",
            "/checks/0/checks/0/kye",
        ),
    ] {
        let answer = server.post(path, body);
        assert_eq!(
            (answer.status, answer.problem_name().as_str()),
            (status, name),
            "{path} {body}: {answer:?}"
        );
        assert_eq!(answer.json()["field"], field, "{path} {body}: {answer:?}");
    }
}

#[test]
fn a_settlement_beyond_its_receipt_is_unprocessable() {
    let server = TestServer::start(RULES);
    let both = r#"{"checks":[{"rule":"api","key":"a","cost":1},{"rule":"search","key":"a","cost":2}]}"#;
    let receipt = server.post("/v1/check", both).json()["receipt"].clone();
    let answer = server.post("/v1/settle", &json!({ "receipt": receipt, "actual": 1 }).to_string());
    assert_eq!((answer.status, answer.problem().as_str()), (422, "actual"));
    let receipt = server.post("/v1/check", r#"{"rule":"api","key":"b"}"#).json()["receipt"].clone();
    let answer = server.post("/v1/settle", &json!({ "receipt": receipt, "actual": 82 }).to_string());
    assert_eq!((answer.status, answer.problem_name().as_str()), (422, "actual"));
}

#[test]
fn unknown_paths_methods_and_content_types_are_refused() {
    let server = TestServer::start(RULES);
    let check = r#"{"rule":"api","key":"alice"}"#;
    let unknown = server.post("/v1/chekc", check);
    assert_eq!((unknown.status, unknown.problem().as_str()), (404, "unknown-route"));
    assert!(unknown.body.contains("did you mean /v1/check?"), "{unknown:?}");
    for path in ["/", "/v1", "/v1/keys/api", "/v1/rlaas/a/b", "/V1/check", "/v1/check/"] {
        assert_eq!(server.ask("GET", path, "").status, 404, "{path}");
    }
    for (method, path, allowed) in
        [("GET", "/v1/check", "POST"), ("DELETE", "/v1/rules", "GET"), ("POST", "/v1/rlaas/alice", "GET")]
    {
        let answer = server.ask(method, path, "");
        assert_eq!((answer.status, answer.problem().as_str()), (405, "method"), "{method} {path}");
        assert_eq!(answer.header("allow").as_deref(), Some(allowed));
    }
    for (name, value) in [
        ("content-type", "text/plain"),
        ("x-other", "y"),
        ("content-type", "application/x-www-form-urlencoded"),
    ] {
        let answer = server.connect().ask_with("POST", "/v1/check", &[(name, value)], check.as_bytes());
        assert_eq!((answer.status, answer.problem().as_str()), (415, "content-type"), "{value}");
    }
    for path in ["/v1/keys/api/%ff", "/v1/keys/api/%zz", "/v1/keys/api/a%00", "/v1/keys/api/"] {
        let answer = server.ask("GET", path, "");
        assert_eq!((answer.status, answer.problem().as_str()), (400, "malformed"), "{path}");
    }
    assert_eq!(server.ask("GET", "/v1/keys/no/alice", "").problem(), "unknown-rule");
    assert_eq!(
        server.ask("GET", "/v1/rlaas/alice", "").problem(),
        "unknown-rule",
        "there is no rule `default`"
    );
}

#[test]
fn inline_rules_need_permission() {
    let server = TestServer::start(RULES);
    let answer = server.post("/v1/check", r#"{"rule":{"limit":5,"window":"60s"},"key":"alice"}"#);
    assert_eq!((answer.status, answer.problem().as_str()), (403, "inline-forbidden"));
    assert!(answer.body.contains("inline_rules: true"), "{answer:?}");
}

#[test]
fn requests_without_token_or_from_other_sites_are_refused() {
    let server =
        TestServer::start_with(RULES, |settings| settings.token = Some(Token::new(TOKEN, Scopes::ALL)));
    let check = br#"{"rule":"api","key":"alice"}"#;
    let ask = |headers: &[(&str, &str)]| {
        let json = [&[("content-type", "application/json")][..], headers].concat();
        server.connect().ask_with("POST", "/v1/check", &json, check)
    };
    let missing = ask(&[]);
    assert_eq!((missing.status, missing.problem().as_str()), (401, "unauthorized"));
    assert_eq!(missing.header("www-authenticate").as_deref(), Some("Bearer"));
    assert_eq!(ask(&[("authorization", "Bearer wrong")]).status, 401);
    let token = ("authorization", "Bearer correct-horse-battery-staple");
    assert_eq!(ask(&[token]).status, 200);
    let foreign = ask(&[token, ("origin", "https://evil.example")]);
    assert_eq!((foreign.status, foreign.problem().as_str()), (403, "foreign"));
    assert_eq!(ask(&[token, ("origin", "http://localhost:3000")]).status, 200);
    assert_eq!(ask(&[token, token]).status, 401, "a repeated header");
    assert!(!missing.body.contains(TOKEN));
    let mut client = server.connect();
    let rebound =
        format!("GET /v1/rules HTTP/1.1\r\nhost: evil.example\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    client.send(rebound.as_bytes());
    assert_eq!(client.answer().unwrap().problem(), "foreign");
}

#[test]
fn the_problem_of_an_unknown_batch_shows_its_shape() {
    let server = TestServer::start(RULES);
    for body in [
        "{}",
        "[]",
        "7",
        r#"[{"rule":"api","key":"a"}]"#,
        r#"{"rule":"api","key":"a"}"#,
        r#"{"requests":[]}"#,
    ] {
        let answer = server.post("/v1/check-batch", body);
        assert_eq!((answer.status, answer.problem().as_str()), (400, "malformed"), "{body}");
        let remedy = answer.json()["remedy"].as_str().unwrap().to_owned();
        assert!(remedy.contains(r#"{"checks":[{"rule":"api","key":"alice""#), "{body}: {remedy}");
    }
}

/// The error answer of hyper is suppressed, also for a bad head that is pipelined behind a valid request.
#[test]
fn a_bad_head_behind_a_valid_request_is_answered_once() {
    let server = TestServer::start(RULES);
    let mut client = server.connect();
    client.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGARBAGE\x01\r\n\r\n");
    let answers: Vec<_> = std::iter::from_fn(|| client.answer()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 400]);
    assert_eq!(answers[1].problem(), "malformed");
}

#[test]
fn the_problem_names_the_charge_that_can_never_pass() {
    let server = TestServer::start("rules: { big: { limit: 1000/1m }, small: { limit: 5/1m } }");
    let body = r#"{"checks":[{"rule":"big","key":"a","cost":100},{"rule":"small","key":"a","cost":6}]}"#;
    let never = server.post("/v1/check", body);
    assert_eq!((never.status, &never.json()["field"]), (422, &json!("/checks/1/cost")));
}

#[test]
fn a_request_without_a_host_is_refused() {
    let server = TestServer::start(RULES);
    let mut client = server.connect();
    client.send(b"GET /livez HTTP/1.1\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 400);
}

#[test]
fn head_is_allowed_unless_the_route_charges() {
    let server = TestServer::start("rules: { default: { limit: 5/1m } }");
    for (path, status) in [("/livez", "200"), ("/v1/rlaas/alice", "405")] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "HEAD {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.ends_with("\r\n\r\n"),
            "{answer}"
        );
    }
    assert_eq!(server.ask("GET", "/v1/rlaas/alice", "").json()["currentCount"], json!(0));
}
