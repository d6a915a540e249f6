//! Keys that are hashed before they reach the store.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::program::{file_of, fresh, run};
use crate::server_process::ServerProcess;

const KEY: &str = "alice@example.com";

fn both(key: &str) -> String {
    json!({ "checks": [{ "rule": "api", "key": key }, { "rule": "all", "key": key }] }).to_string()
}

#[test]
fn a_sqlite_file_holds_no_key_in_clear() {
    let secret = file_of("secret", "0123456789abcdef\n");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let rules = "rules: { api: { limit: 5/1d, overrides: { 'ci-*': unlimited, mallory: blocked, 'alice@*': 3/1d } }, all: { limit: 99/1d } }";
    let (clear, hashed) = (fresh("store").join("clear.db"), fresh("hashed").join("hashed.db"));
    for (database, setting, in_file) in
        [(&clear, String::new(), true), (&hashed, format!("hash_keys_secret_file: {secret}\n"), false)]
    {
        let config = file_of("rules.yaml", format!("{rules}\n{setting}"));
        let store = format!("sqlite:{}", database.display());
        let server = ServerProcess::start(&["--config", &config, "--store", &store]);
        let ask = |path: &str, key: &str| server.ask("POST", path, &both(key));
        let decided = ask("/v1/check", KEY);
        let answer = decided.json();
        assert_eq!((decided.status, &answer["limit"]), (200, &json!(3)), "the override applies: {decided:?}");
        assert_eq!(answer["checks"][0]["key"], KEY);
        assert_eq!((ask("/v1/check", "ci-7").status, ask("/v1/check", "mallory").status), (200, 403));
        assert_eq!(server.ask("GET", "/v1/top", "").json()["allowed"][0]["key"], KEY);

        let used =
            || server.ask("GET", &format!("/v1/keys/api/{KEY}"), "").json()["limits"][0]["used"].clone();
        assert_eq!(used(), 1);
        let refund = json!({ "receipt": answer["receipt"] }).to_string();
        assert_eq!(server.ask("POST", "/v1/refund", &refund).json()["applied"], true);
        assert_eq!((ask("/v1/check", KEY).status, used()), (200, json!(1)));

        server.signal("TERM");
        assert_eq!(server.ended().0.code(), Some(0));
        let directory = fs::read_dir(database.parent().unwrap()).unwrap();
        let bytes: Vec<u8> = directory.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert_eq!(found, in_file, "{database:?}");
    }
    let restarted = file_of("again.yaml", format!("{rules}\nhash_keys_secret_file: {secret}\n"));
    let store = format!("sqlite:{}", hashed.display());
    let server = ServerProcess::start(&["--config", &restarted, "--store", &store]);
    let used = server.ask("GET", &format!("/v1/keys/api/{KEY}"), "").json()["limits"][0]["used"].clone();
    assert_eq!(used, 1, "the same secret finds the same state");
}

#[test]
fn a_missing_or_short_secret_is_a_mistake() {
    let short = file_of("short", "hunter2\n");
    for (path, words) in
        [("no-such-file", "cannot be read"), (&*short, "holds no secret of 16 to 4096 bytes")]
    {
        let text = format!("rules: {{ api: {{ limit: 5/1m }} }}\nhash_keys_secret_file: {path}\n");
        let refused = run(&["validate", &file_of("rules.yaml", text)], "");
        assert_eq!(refused.code, 2);
        assert!(
            refused.err.contains("rules.yaml:2:24: hash_keys_secret_file: ") && refused.err.contains(words)
        );
        assert!(!refused.err.contains("hunter2"), "{}", refused.err);
    }
}
