//! The dates of answers come from the server's clock.

use std::sync::Arc;

use slidegate::time::ManualClock;

use super::test_server::TestServer;
use crate::config::Config;

/// A wall clock before 1970 shows zero. hyper's own date would read the system clock, and panic then.
#[test]
fn every_answer_has_the_date_of_a_clock_before_1970() {
    let rules = Config::parse("test.yaml", "rules: { api: { limit: 5/1m } }").unwrap().into_rules();
    let server = TestServer::start_at(Arc::new(ManualClock::at_us(0)), rules, |_| {});
    let check = r#"{"rule":"api","key":"alice"}"#;
    for (method, path, body, status) in [
        ("POST", "/v1/check", check, 200),
        ("POST", "/v1/peek", check, 200),
        ("GET", "/v1/rules", "", 200),
        ("GET", "/nowhere", "", 404),
    ] {
        let answer = server.ask(method, path, body);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!(answer.header("date").as_deref(), Some("Thu, 01 Jan 1970 00:00:00 GMT"), "{path}");
    }
}
