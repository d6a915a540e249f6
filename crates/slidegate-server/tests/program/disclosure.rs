//! What answers do not tell callers without a token: addresses and paths.

use crate::program::file_of;
use crate::server::RedisServer;
use crate::server_process::ServerProcess;

#[test]
fn readyz_does_not_show_the_address_of_the_store() {
    let redis = RedisServer::start();
    let url = redis.url();
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1m, on_store_error: deny } }");
    let server = ServerProcess::start(&["--config", &config, "--store", &url]);
    drop(redis);
    let ready = server.ask("GET", "/readyz?verbose", "");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.body.contains("[-] store: "), "{ready:?}");
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    for part in [address, address.rsplit(':').next().expect("a port"), "127.0.0.1"] {
        assert!(!ready.body.contains(part), "{part}: {ready:?}");
    }
}

#[test]
fn a_refused_inline_rule_does_not_show_the_path_of_the_configuration() {
    let config = file_of("rules.yaml", "rules: { api: { limit: 5/1m } }");
    let server = ServerProcess::start(&["--config", &config]);
    for path in ["/v1/check", "/v1/peek", "/v1/explain", "/v1/reset"] {
        let answer = server.ask("POST", path, r#"{"rule":{"limit":"5/1m"},"key":"alice"}"#);
        assert_eq!((answer.status, answer.problem().as_str()), (403, "inline-forbidden"), "{path}");
        assert!(
            answer.body.contains("inline_rules: true") && !answer.body.contains("rules.yaml"),
            "{answer:?}"
        );
    }
}
