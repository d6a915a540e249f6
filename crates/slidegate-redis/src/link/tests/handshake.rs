//! The handshake, and its errors.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use redis::Value;
use tokio::net::TcpListener;

use super::server::{RedisServer, folder, free_port};
use super::stub::{Stub, handshake_reply};
use super::{AMPLE, echo, echoed, link, one, options};
use crate::link::{ConnectError, Link};
use crate::options::RedisOptions;

async fn refused(options: &RedisOptions) -> ConnectError {
    let error = Link::connect(options).await.expect_err("this must not connect");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    error
}

#[tokio::test]
async fn a_password_must_be_right() {
    let server = RedisServer::start_with(&["--requirepass", "sesame"]);
    let url = |login: &str| server.url().replace("redis://", &format!("redis://{login}"));
    for login in ["", ":hunter2@", "nobody:hunter2@"] {
        let error = refused(&options(&url(login))).await;
        assert!(matches!(error, ConnectError::Login { .. }), "{login}: {error}");
        assert!(error.to_string().contains("in the URL"), "{error}");
    }
    for login in [":sesame@", "default:sesame@"] {
        let link = Link::connect(&options(&url(login))).await.unwrap();
        assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_its_address() {
    let error = refused(&options(&format!("redis://:hunter2@127.0.0.1:{}", free_port()))).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_server_that_accepts_and_does_not_reply_times_out() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("redis://:hunter2@{}", listener.local_addr().unwrap());
    let options = options(&url).connect_timeout(Duration::from_millis(50)).unwrap();
    let error = tokio::time::timeout(AMPLE, refused(&options)).await.unwrap();
    assert!(matches!(error, ConnectError::TimedOut { after_ms: 50, .. }), "{error}");
}

#[tokio::test]
async fn a_redis_older_than_five_is_refused_with_its_version() {
    let stub = Stub::start(|words| handshake_reply(words, "4.0.14")).await;
    let error = refused(&options(&stub.url())).await;
    assert!(matches!(&error, ConnectError::TooOld { version, .. } if version == "4.0.14"), "{error}");
    assert!(error.to_string().contains("version 4.0.14; use version 5 or newer"), "{error}");
}

#[tokio::test]
async fn redis_five_falls_back_to_resp2() {
    let stub = Stub::start(|words| match &*words[0] {
        "EVALSHA" => Some(":1\r\n".into()),
        _ => handshake_reply(words, "5.0.14"),
    });
    let stub = stub.await;
    let link = Link::connect(&options(&stub.url())).await.unwrap();
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(stub.received("AUTH"), 2, "once per connection");
}

#[tokio::test]
async fn a_server_that_is_no_redis_is_refused() {
    let stub = Stub::start(|words| match &*words[0] {
        "INFO" => Some("+hello\r\n".into()),
        _ => handshake_reply(words, "7.0.15"),
    });
    let error = refused(&options(&stub.await.url())).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    let stub = Stub::start(|_| Some("HTTP/1.1 400 Bad Request\r\n\r\n".into())).await;
    let error = refused(&options(&stub.url())).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_user_without_info_gets_the_permission_to_grant() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "limiter", "on", ">hunter2", "~*", "+@all", "-info"]);
    let url = server.url().replace("redis://", "redis://limiter:hunter2@");
    let error = refused(&options(&url)).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("ACL SETUSER"), "{error}");
}

#[tokio::test]
async fn the_database_of_the_url_is_used() {
    let server = RedisServer::start();
    let link = Link::connect(&options(&format!("{}/3", server.url()))).await.unwrap();
    assert_eq!(link.call(None, super::count("k")).await, Ok(Value::Int(1)));
    let info = server.command(&["INFO", "keyspace"]);
    assert!(format!("{info:?}").contains("db3"), "{info:?}");
    let error = refused(&options(&format!("{}/9999", server.url()))).await;
    assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
}

#[tokio::test]
async fn a_unix_socket_works() {
    let folder = folder();
    let path = folder.join("redis.sock");
    let _server = RedisServer::start_with(&["--unixsocket", path.to_str().unwrap()]);
    let link = Link::connect(&options(&format!("unix://{}", path.display()))).await.unwrap();
    assert_eq!(link.call(None, echo(b"k", b"v")).await, Ok(echoed(b"k", b"v")));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A certificate authority, and certificates that it signed for servers and clients.
struct Certificates(PathBuf);

impl Certificates {
    fn make() -> Self {
        let folder = folder();
        let openssl = |line: &str| {
            let output = Command::new("openssl").args(line.split(' ')).current_dir(&folder).output();
            let output = output.expect("openssl is installed; Debian: `apt-get install openssl`");
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(&format!("req -x509 {key} -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"));
        for (name, hosts) in
            [("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:a.test"), ("other", "DNS:b.test")]
        {
            std::fs::write(folder.join("names"), format!("subjectAltName={hosts}\n")).unwrap();
            openssl(&format!("req {key} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            openssl(&format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out {name}.pem"
            ));
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// A server with the certificate of that name.
    fn server(&self, name: &str, port: u16, clients: &str) -> RedisServer {
        let port = port.to_string();
        let (certificate, key) = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        let authority = self.path("ca.pem");
        RedisServer::start_with(&[
            "--tls-port",
            &port,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &authority,
            "--tls-auth-clients",
            clients,
        ])
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(Path::new(&self.0));
    }
}

#[tokio::test]
async fn tls_verifies_the_signer_of_the_certificate() {
    let certificates = Certificates::make();
    let port = free_port();
    let _server = certificates.server("server", port, "no");
    let trusting = |host: &str| {
        let options = options(&format!("rediss://:hunter2@{host}:{port}"));
        options.root_certificates(&certificates.read("ca.pem")).unwrap()
    };
    for host in ["localhost", "127.0.0.1"] {
        let link = Link::connect(&trusting(host)).await.unwrap();
        assert_eq!(link.call(None, echo(b"k", b"v")).await, Ok(echoed(b"k", b"v")), "{host}");
    }
    let others = trusting("localhost").root_certificates(&certificates.read("client.pem")).unwrap();
    let error = refused(&others).await;
    assert!(matches!(error, ConnectError::Tls { .. }), "signed by another: {error}");
    let plain = refused(&options(&format!("redis://:hunter2@127.0.0.1:{port}"))).await;
    assert!(matches!(plain, ConnectError::Broken { .. }), "{plain}");
    assert!(plain.to_string().contains("rediss://"), "{plain}");
}

#[tokio::test]
async fn tls_verifies_the_name_of_the_server() {
    let certificates = Certificates::make();
    let port = free_port();
    let _server = certificates.server("other", port, "no");
    let options = options(&format!("rediss://:hunter2@localhost:{port}"));
    let error = refused(&options.root_certificates(&certificates.read("ca.pem")).unwrap()).await;
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    assert!(error.to_string().contains("localhost"), "{error}");
}

#[tokio::test]
async fn tls_sends_the_client_certificate() {
    let certificates = Certificates::make();
    let port = free_port();
    let server = certificates.server("server", port, "yes");
    let options = options(&format!("rediss://localhost:{port}"));
    let options = options.root_certificates(&certificates.read("ca.pem")).unwrap();
    let error = refused(&options).await;
    assert!(matches!(error, ConnectError::Tls { .. } | ConnectError::Broken { .. }), "{error}");
    let identity = (certificates.read("client.pem"), certificates.read("client.key"));
    let known = Link::connect(&options.client_certificate(&identity.0, &identity.1).unwrap()).await.unwrap();
    assert_eq!(known.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!(link(&server).await.call(None, one()).await, Ok(Value::Int(1)), "and without TLS");
}
