//! `slidegate serve` with TLS: its greeting, its errors and its log.

use crate::certificates::Certificates;
use crate::client::Client;
use crate::program::run;
use crate::server_process::ServerProcess;

/// A configuration file with TLS.
fn config(certificates: &Certificates, name: &str) -> String {
    let (certificate, key) =
        (certificates.text(&format!("{name}.pem")), certificates.text(&format!("{name}.key")));
    let file = format!("{name}.yaml");
    certificates.write(
        &file,
        &format!("rules: {{ api: {{ limit: 5/1m }} }}\ntls: {{ certificate: {certificate}, key: {key} }}\n"),
    );
    certificates.text(&file)
}

#[test]
fn it_greets_with_https_and_logs_what_becomes_of_its_certificate() {
    let certificates = Certificates::new();
    certificates.issue("server");
    certificates.issue_for("old", "20200101000000Z", "20210101000000Z");
    let server = ServerProcess::start(&["--config", &config(&certificates, "server")]);
    assert!(server.greeting.contains("slidegate listens on https://127.0.0.1:"), "{}", server.greeting);
    let ask = || {
        let mut client = Client::over(certificates.connect(server.address, None).expect("a handshake"));
        client.ask("POST", "/v1/check", r#"{"rule":"api","key":"alice"}"#).status
    };
    assert_eq!(ask(), 200);
    certificates.replace("old", "server");
    let mut server = server;
    let line = server.next_line();
    assert!(
        line.contains(
            "server.pem` holds a certificate that expired on Fri, 01 Jan 2021 00:00:00 GMT; renew it"
        ),
        "{line}"
    );
    assert!(line.contains("the TLS certificate from before stays in force"), "{line}");
    let mut client = Client::over(certificates.connect(server.address, None).expect("a handshake"));
    assert_eq!(client.ask("GET", "/v1/rules", "").status, 200);
}

#[test]
fn a_server_does_not_start_with_an_unusable_certificate() {
    let certificates = Certificates::new();
    certificates.issue("server");
    certificates.issue("other");
    certificates.issue_for("old", "20200101000000Z", "20210101000000Z");
    let expired = run(&["serve", "--http", "127.0.0.1:0", "--config", &config(&certificates, "old")], "");
    assert_eq!(expired.code, 2, "{}", expired.err);
    assert!(expired.err.contains("error: tls.certificate: `"), "{}", expired.err);
    assert!(expired.err.contains("old.pem` holds a certificate that expired on "), "{}", expired.err);
    let validated = run(&["validate", &certificates.text("old.yaml")], "");
    assert!(validated.err.contains("old.yaml:2:") && validated.code == 2, "{}", validated.err);
    let mixed = config(&certificates, "server");
    std::fs::copy(certificates.path("other.key"), certificates.path("server.key")).unwrap();
    let mixed = run(&["serve", "--http", "127.0.0.1:0", "--config", &mixed], "");
    assert!(mixed.err.contains("error: tls.key: `") && mixed.code == 2, "{}", mixed.err);
    std::fs::remove_file(certificates.path("server.key")).unwrap();
    let missing = run(&["serve", "--http", "127.0.0.1:0", "--config", &certificates.text("server.yaml")], "");
    let expected = "tls.key: `";
    assert!(missing.err.contains("server.yaml:2:") && missing.err.contains(expected), "{}", missing.err);
}
