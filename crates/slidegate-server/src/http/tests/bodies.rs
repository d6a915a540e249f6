//! Fuzzed bodies: the fast parser and the slow one agree, and neither panics.

use super::client::request;
use super::fuzzed_bodies::{Random, SEEDS, mutated};
use super::test_server::TestServer;
use crate::http::body::CheckBody;
use crate::http::body_errors;

#[test]
fn fast_and_slow_parser_agree_on_fuzzed_bodies() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let body = mutated(&mut Random::new(seed));
        let text = String::from_utf8_lossy(&body);
        match (CheckBody::read_valid(&body), body_errors::request(&body)) {
            (Some(fast), Ok(slow)) => {
                assert_eq!(fast, slow, "seed {seed}: {text}");
                accepted += 1;
            }
            (Some(_), Err(error)) => panic!("seed {seed}: only the fast parser accepts {text}: {error}"),
            (None, Ok(_)) => panic!("seed {seed}: only the slow parser accepts {text}"),
            (None, Err(error)) => {
                assert!(!error.is_empty() && error.len() < 1_000, "seed {seed}: {text}: {error}");
                refused += 1;
            }
        }
    }
    assert!(accepted > 1_000 && refused > 1_000, "{accepted} were accepted and {refused} refused");
    for seed in SEEDS {
        assert!(CheckBody::read_valid(seed.as_bytes()).is_some(), "{seed}");
    }
}

/// The readers that serde derives would also accept a list of the fields' values.
#[test]
fn a_list_in_place_of_an_object_is_refused() {
    for body in [
        r#"["api","alice"]"#,
        r#"{"checks":[["api","alice",2]]}"#,
        r#"{"rule":[5,"60s"],"key":"alice"}"#,
        r#"{"rule":"api","key":"alice","on_store_error":{"allow":null}}"#,
    ] {
        assert!(CheckBody::read_valid(body.as_bytes()).is_none(), "{body}");
        assert!(body_errors::request(body.as_bytes()).is_err(), "{body}");
    }
    for body in [r#"{"checks":[["api","alice"]]}"#, r#"[[{"rule":"api","key":"alice"}]]"#] {
        assert!(CheckBody::read_batch(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn every_fuzzed_body_is_answered() {
    let server =
        TestServer::start("{ rules: { api: { limit: 5/1m }, search: { limit: 3/1m } }, inline_rules: true }");
    let mut client = server.connect();
    let paths = ["check", "check-batch", "peek", "explain", "refund", "settle", "credit", "reset"];
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let body = mutated(&mut random);
        let path = format!("/v1/{}", paths[random.below(paths.len())]);
        let json = [("content-type", "application/json")];
        client.send(&request("POST", &path, &json, &body));
        let answer = client.answer().unwrap_or_else(|| panic!("seed {seed}: the connection was closed"));
        let known = [200, 400, 404, 422, 429, 503];
        assert!(known.contains(&answer.status), "seed {seed}: {answer:?}");
        if !matches!(answer.status, 200 | 429) {
            answer.problem_name();
        }
    }
    assert_eq!(server.post("/v1/check", r#"{"rule":"api","key":"fresh"}"#).json()["used"], 1);
}
