//! Requests that are refused before they reach a handler.

use super::client::request;
use super::test_server::TestServer;

const CHECK: &str = r#"{"rule":"default","key":"alice"}"#;
const RULES: &str = "rules: { default: { limit: 5/1m } }";

/// A caller who sends one expects it to have an effect.
#[test]
fn query_parameters_that_mean_nothing_are_refused_by_name() {
    let server = TestServer::start(RULES);
    let mut client = server.connect();
    for (method, path, words) in [
        ("POST", "/v1/check?cost=5", "`cost`"),
        ("POST", "/v1/reset?dry_run", "`dry_run`"),
        ("GET", "/v1/rlaas/alice?cost=5", "`cost`"),
        ("GET", "/v1/keys/default/alice?rule=x", "`rule`"),
        ("GET", "/v1/top?limit=5", "`limit`"),
        ("GET", "/readyz?verbos", "did you mean `verbose`?"),
        ("GET", "/livez?verbose", "`verbose`"),
    ] {
        let answer = client.ask(method, path, CHECK);
        assert_eq!((answer.status, answer.problem().as_str()), (400, "malformed"), "{path}");
        assert_eq!(answer.json()["field"], "query", "{path}");
        assert!(answer.body.contains(words), "{path}: {answer:?}");
    }
    assert_eq!(
        client.ask("GET", "/v1/keys/default/alice?", "").json()["limits"][0]["used"],
        0,
        "nothing was charged"
    );
    assert_eq!(
        (client.ask("GET", "/v1/top?n=3", "").status, client.ask("GET", "/readyz?verbose", "").status),
        (200, 200)
    );
}

/// A page in the browser of a machine that reaches the server charges nothing.
#[test]
fn writes_from_web_pages_are_refused_off_loopback() {
    let server = TestServer::start_with(RULES, |settings| settings.http = "0.0.0.0:0".parse().unwrap());
    let ask = |page: &[(&str, &str)], path: &str| {
        let headers = [&[("content-type", "application/json")][..], page].concat();
        let mut client = server.connect();
        client.send(&request("POST", path, &headers, CHECK.as_bytes()));
        client.answer().unwrap()
    };
    for page in [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        for path in ["/v1/check", "/v1/reset"] {
            let answer = ask(&[page], path);
            assert_eq!((answer.status, answer.problem().as_str()), (403, "foreign"), "{page:?} {path}");
        }
    }
    assert_eq!(ask(&[], "/v1/check").json()["used"], 1, "a program, and nothing was charged before");
}
