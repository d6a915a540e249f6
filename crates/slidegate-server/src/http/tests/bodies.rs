//! The quick reader of bodies and the slow one say the same, and neither falls over.

use super::client::request;
use super::harness::Running;
use super::mischief::{Random, SEEDS, mutated};
use crate::http::body::Request;
use crate::http::slow_body;

#[test]
fn the_quick_reader_takes_nothing_that_the_slow_one_does_not() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..20_000 {
        let body = mutated(&mut Random::new(seed));
        let shown = String::from_utf8_lossy(&body);
        match (Request::read_good(&body), slow_body::request(&body)) {
            (Some(quick), Ok(slow)) => {
                assert_eq!(quick, slow, "seed {seed}: {shown}");
                taken += 1;
            }
            (Some(_), Err(error)) => panic!("seed {seed}: only the quick one takes {shown}: {error}"),
            (None, Ok(_)) => panic!("seed {seed}: only the slow one takes {shown}"),
            (None, Err(error)) => {
                assert!(!error.is_empty() && error.len() < 1_000, "seed {seed}: {shown}: {error}");
                refused += 1;
            }
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} were taken and {refused} refused");
    for seed in SEEDS {
        assert!(Request::read_good(seed.as_bytes()).is_some(), "{seed}");
    }
}

/// Left to itself, serde takes the values of an object's fields as a list, too.
#[test]
fn a_list_is_no_object() {
    for body in [
        r#"["api","alice"]"#,
        r#"{"checks":[["api","alice",2]]}"#,
        r#"{"rule":[5,"60s"],"key":"alice"}"#,
        r#"{"rule":"api","key":"alice","on_store_error":{"allow":null}}"#,
    ] {
        assert!(Request::read_good(body.as_bytes()).is_none(), "{body}");
        assert!(slow_body::request(body.as_bytes()).is_err(), "{body}");
    }
    for body in [r#"{"checks":[["api","alice"]]}"#, r#"[[{"rule":"api","key":"alice"}]]"#] {
        assert!(Request::read_batch(body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn whatever_is_sent_is_answered() {
    let server =
        Running::start("{ rules: { api: { limit: 5/1m }, dear: { limit: 3/1m } }, inline_rules: true }");
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
