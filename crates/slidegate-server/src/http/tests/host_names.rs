//! The host that a request names: in its header `host`, and in a target of absolute form.

use super::test_server::TestServer;

/// A page that has pointed its own domain at this machine must not get in by the form that proxies use.
#[test]
fn a_target_in_absolute_form_is_checked_like_the_host() {
    let server = TestServer::start("rules: { api: { limit: 5/1m } }");
    let body = r#"{"rule":"api","key":"alice"}"#;
    for (version, target, host, status, field) in [
        ("1.1", "http://localhost", Some("localhost"), 200, None),
        ("1.1", "http://LOCALHOST:80", Some("localhost:80"), 200, None),
        ("1.0", "http://localhost", None, 200, None),
        ("1.1", "http://evil.example", Some("localhost"), 400, Some("host")),
        ("1.1", "http://localhost", Some("evil.example"), 400, Some("host")),
        ("1.1", "http://localhost@evil.example", Some("localhost"), 400, Some("host")),
        ("1.1", "http://localhost", None, 400, Some("host")),
        ("1.1", "http://evil.example", Some("evil.example"), 403, Some("host")),
        ("1.1", "http://localhost@evil.example", Some("localhost@evil.example"), 403, Some("host")),
        ("1.0", "http://evil.example", None, 403, Some("host")),
    ] {
        let host = host.map_or_else(String::new, |host| format!("host: {host}\r\n"));
        let request = format!(
            "POST {target}/v1/peek HTTP/{version}\r\n{host}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut client = server.connect();
        client.send(request.as_bytes());
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, status, "{request}: {answer:?}");
        assert_eq!(answer.json()["field"].as_str(), field, "{request}");
    }
}
