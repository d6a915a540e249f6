//! Charges of several rules are made all or none, under concurrency and in any order.

use std::sync::Barrier;
use std::thread;

use super::test_server::TestServer;

const RULES: &str = "rules: { wide: { limit: 300/10m }, narrow: { limit: 50/10m } }";
const CALLERS: usize = 16;
const CALLS: usize = 40;

fn used(server: &TestServer, rule: &str) -> u64 {
    let json = server.ask("GET", &format!("/v1/keys/{rule}/alice"), "").json();
    json["limits"][0]["used"].as_u64().unwrap()
}

/// Half of the callers name the rules in one order, half in the other. The narrow rule admits 50; the wide rule must
/// not charge a request that the narrow one refuses.
#[test]
fn both_or_neither_are_charged_in_both_orders() {
    let server = TestServer::start(RULES);
    let [wide, narrow] = ["wide", "narrow"].map(|rule| format!(r#"{{"rule":"{rule}","key":"alice"}}"#));
    let orders = [format!(r#"{{"checks":[{wide},{narrow}]}}"#), format!(r#"{{"checks":[{narrow},{wide}]}}"#)];
    let start = Barrier::new(CALLERS);
    let allowed: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (server, start, body) = (&server, &start, &orders[caller % 2]);
                scope.spawn(move || {
                    let mut client = server.connect();
                    start.wait();
                    let mut allowed = 0;
                    for _ in 0..CALLS {
                        let answer = client.ask("POST", "/v1/check", body);
                        match answer.status {
                            200 => allowed += 1,
                            429 => assert_eq!(answer.json()["rule"], "narrow"),
                            other => panic!("{other}: {answer:?}"),
                        }
                    }
                    allowed
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(allowed, 50);
    assert_eq!((used(&server, "narrow"), used(&server, "wide")), (50, 50));
}

/// A thousand requests for one key, and a limit of 50.
#[test]
fn exactly_the_limit_passes() {
    let server = TestServer::start(RULES);
    let allowed: usize = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.connect();
                    let body = r#"{"rule":"narrow","key":"alice"}"#;
                    (0..1_000 / CALLERS)
                        .filter(|_| client.ask("POST", "/v1/check", body).status == 200)
                        .count()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(allowed, 50);
}
