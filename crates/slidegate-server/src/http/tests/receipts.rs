//! Receipts over HTTP.

use std::thread;

use serde_json::json;

use super::test_server::TestServer;

const RULES: &str = "rules: { api: { limit: 50/10m }, day: { limit: 50/24h, algorithm: gcra } }";

fn receipt(server: &TestServer, body: &str) -> String {
    server.post("/v1/check", body).json()["receipt"].as_str().unwrap().to_owned()
}

fn refund(server: &TestServer, receipt: &str) -> super::client::HttpAnswer {
    server.post("/v1/refund", &json!({ "receipt": receipt }).to_string())
}

#[test]
fn an_edited_receipt_is_refused() {
    let server = TestServer::start(RULES);
    let good = receipt(&server, r#"{"rule":"api","key":"alice","cost":5}"#);
    let mut client = server.connect();
    for index in 0..good.len() {
        let mut edited = good.clone().into_bytes();
        edited[index] = if edited[index] == b'A' { b'B' } else { b'A' };
        let body = json!({ "receipt": String::from_utf8(edited).unwrap() }).to_string();
        let answer = client.ask("POST", "/v1/refund", &body);
        assert_eq!((answer.status, answer.problem().as_str()), (400, "bad-receipt"), "at {index}");
    }
    for forged in
        ["", "A", "AAAA", "not base64!", &good[1..], &good[..good.len() - 1], &format!("{good}AAAA")]
    {
        assert_eq!(refund(&server, forged).problem(), "bad-receipt", "{forged}");
    }
    assert_eq!(refund(&server, &good).body, r#"{"applied":true,"units":5}"#, "the original is not spent");
}

#[test]
fn a_receipt_of_another_server_is_refused() {
    let (here, there) = (TestServer::start(RULES), TestServer::start(RULES));
    let foreign = receipt(&there, r#"{"rule":"api","key":"alice"}"#);
    receipt(&here, r#"{"rule":"api","key":"alice"}"#);
    assert_eq!(refund(&here, &foreign).problem(), "bad-receipt");
    assert_eq!(refund(&there, &foreign).json()["applied"], true);
}

/// Sixteen callers refund the same receipt at once.
#[test]
fn a_receipt_works_once() {
    let server = TestServer::start(RULES);
    for body in [
        r#"{"rule":"api","key":"alice","cost":7}"#,
        r#"{"checks":[{"rule":"api","key":"alice","cost":3},{"rule":"day","key":"alice","cost":4}]}"#,
    ] {
        let receipt = receipt(&server, body);
        let applied: usize = thread::scope(|scope| {
            let callers: Vec<_> = (0..16)
                .map(|_| {
                    let (server, receipt) = (&server, &receipt);
                    scope.spawn(move || {
                        let answer = refund(server, receipt);
                        assert_eq!(answer.status, 200, "{answer:?}");
                        usize::from(answer.json()["applied"] == true)
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        assert_eq!(applied, 1, "{body}");
    }
    let json = server.ask("GET", "/v1/keys/api/alice", "").json();
    assert_eq!(json["limits"][0]["used"], 0);
}

#[test]
fn a_reset_voids_the_receipts_before_it() {
    let server = TestServer::start(RULES);
    let before = receipt(&server, r#"{"rule":"api","key":"alice","cost":5}"#);
    server.post("/v1/reset", r#"{"rule":"api","key":"alice"}"#);
    receipt(&server, r#"{"rule":"api","key":"alice","cost":5}"#);
    assert_eq!(refund(&server, &before).body, r#"{"applied":false,"units":0}"#);
}
