//! HTTP over TLS.

use std::io::{self, Read, Write};
use std::time::Duration;

use super::client::{Client, request};
use super::test_server::TestServer;
use crate::service::TlsFiles;
use crate::tls::tests::certificates::{Certificates, TlsStream};

const RULES: &str = "rules: { api: { limit: 100000/1m } }";
const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;
const JSON: (&str, &str) = ("content-type", "application/json");

fn start(certificates: &Certificates, client_ca: Option<&str>) -> TestServer {
    TestServer::start_with(RULES, |settings| {
        settings.bounds.request_time = Duration::from_millis(200);
        settings.tls = TlsFiles {
            certificate: Some(certificates.path("server.pem")),
            key: Some(certificates.path("server.key")),
            client_ca: client_ca.map(|name| certificates.path(name)),
        };
    })
}

/// Connects, sends a check and reads the first byte of the answer.
fn ask(
    server: &TestServer,
    certificates: &Certificates,
    client: Option<(&Certificates, &str)>,
) -> io::Result<Client<TlsStream>> {
    let mut stream = certificates.connect(server.address, client)?;
    stream.write_all(&request("POST", "/v1/check", &[JSON], CHECK.as_bytes()))?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let mut client = Client::over(stream);
    client.put_back(byte[0]);
    Ok(client)
}

#[test]
fn requests_are_answered_over_tls_on_the_fast_path_and_by_hyper() {
    let certificates = Certificates::new();
    certificates.issue("server");
    let server = start(&certificates, None);
    let mut client = ask(&server, &certificates, None).unwrap();
    assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(client.answer().unwrap().status, 200);
    // Pipelined answers of more than one TLS record.
    let one = request("POST", "/v1/check", &[JSON], CHECK.as_bytes());
    client.send(&one.repeat(200));
    for _ in 0..200 {
        assert_eq!(client.answer().unwrap().status, 200);
    }
    assert_eq!(client.ask("POST", "/v1/peek", CHECK).json()["used"], 201);
    let long = format!("{CHECK}{}", " ".repeat(60_000));
    assert_eq!(client.ask("POST", "/v1/peek", &long).status, 200);
    assert_eq!(client.ask("GET", "/v1/rules", "").status, 200);
    assert_eq!(client.ask("POST", "/v1/peek", "{}").problem(), "malformed");
    client.send(b"garbage\r\n\r\n");
    assert_eq!(client.answer().unwrap().problem(), "malformed");
    assert!(client.is_closed(), "with a close_notify");
}

#[test]
fn clients_and_servers_of_another_authority_are_refused() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    for issuer in [&certificates, &others] {
        issuer.issue("server");
        issuer.issue("client");
    }
    let open = start(&certificates, None);
    assert!(ask(&open, &others, None).is_err(), "the client does not trust the server");
    let mutual = start(&certificates, Some("ca.pem"));
    let mut client = ask(&mutual, &certificates, Some((&certificates, "client"))).unwrap();
    assert_eq!(client.answer().unwrap().status, 200);
    assert!(ask(&mutual, &certificates, None).is_err(), "without a certificate");
    assert!(ask(&mutual, &certificates, Some((&others, "client"))).is_err(), "of another authority");
    let mut client = ask(&mutual, &certificates, Some((&certificates, "client"))).unwrap();
    assert_eq!(client.answer().unwrap().status, 200, "others are served");
}

#[test]
fn a_slow_silent_or_plain_handshake_ends_in_the_request_time() {
    let certificates = Certificates::new();
    certificates.issue("server");
    let server = start(&certificates, None);
    // A TLS record that announces more than it has.
    for bytes in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let mut client = server.connect();
        client.send(bytes);
        let mut rest = Vec::new();
        // A reset is an end, too.
        let _ = client.stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP"), "nothing is answered outside TLS");
    }
    assert_eq!(ask(&server, &certificates, None).unwrap().answer().unwrap().status, 200);
}

#[test]
fn a_replaced_certificate_is_used_for_new_connections_and_open_ones_go_on() {
    let certificates = Certificates::new();
    certificates.issue("server");
    certificates.issue("next");
    let server = start(&certificates, None);
    let shown = |client: &Client<TlsStream>| client.stream.conn.peer_certificates().unwrap()[0].clone();
    let mut before = ask(&server, &certificates, None).unwrap();
    assert_eq!((before.answer().unwrap().status, shown(&before)), (200, certificates.certificate("server")));
    certificates.replace("next", "server");
    let next = certificates.certificate("next");
    loop {
        let mut client = ask(&server, &certificates, None).unwrap();
        assert_eq!(client.answer().unwrap().status, 200);
        // Until the server has looked at the files.
        if shown(&client) == next {
            break;
        }
        assert_ne!(before.ask("POST", "/v1/check", CHECK).status, 500);
    }
    assert_eq!(before.ask("GET", "/v1/rules", "").status, 200, "an open connection goes on");
}
