//! Callers without the right: tokens that are nearly right, scopes that are missing, pages of other sites.

use crate::attack::{Attack, Plan};
use crate::client::HttpAnswer;
use crate::observe::{grouped, stop};
use crate::program::{command, file_of, run};
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "authority",
    holds: "each got 401 or 403, without a word about which token or scope there is; the right token and programs \
            without a page were served",
    carry_out: attack,
};

const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;
const RULES: &str = "rules: { api: { limit: 1000000/1h } }\n";
const SCOPES: [&str; 3] = ["check", "read", "admin"];
/// A request, its body, and the scope that it needs.
const REQUESTS: &[(&str, &str, &str, &str)] = &[
    ("POST", "/v1/check", CHECK, "check"),
    ("POST", "/v1/check-batch", "{\"checks\":[]}", "check"),
    ("POST", "/v1/peek", CHECK, "check"),
    ("POST", "/v1/refund", "{}", "check"),
    ("POST", "/v1/settle", "{}", "check"),
    ("POST", "/v1/explain", CHECK, "read"),
    ("GET", "/v1/rules", "", "read"),
    ("GET", "/v1/keys/api/alice", "", "read"),
    ("GET", "/v1/top", "", "read"),
    ("GET", "/metrics", "", "read"),
    ("GET", "/readyz?verbose", "", "read"),
    ("POST", "/v1/reset", CHECK, "admin"),
    ("POST", "/v1/credit", CHECK, "admin"),
    ("POST", "/v1/admin/reload", "", "admin"),
];

fn attack(plan: &Plan) -> String {
    let tried = wrong_tokens(plan) + foreign_pages();
    format!("{} requests", grouped(tried))
}

fn wrong_tokens(plan: &Plan) -> u64 {
    let tokens = SCOPES.map(|scope| (scope, new_token()));
    let listed = tokens
        .iter()
        .map(|(scope, (_, hash))| format!("  {scope}-1: {{ sha256: \"{hash}\", scopes: [{scope}] }}\n"));
    let config = format!("{RULES}tokens:\n{}", listed.collect::<String>());
    let server = ServerProcess::start(&["--config", &file_of("tokens.yaml", config)]);
    let ask = |token: &str, method: &str, path: &str, body: &str| -> HttpAnswer {
        let authorization = format!("Bearer {token}");
        let headers = [("content-type", "application/json"), ("authorization", authorization.as_str())];
        server.connect().ask_with(method, path, &headers, body.as_bytes())
    };
    let mut tried = 0;
    for (scope, (token, hash)) in &tokens {
        for (method, path, body, needed) in REQUESTS {
            let status = ask(token, method, path, body).status;
            assert_eq!(status == 403, scope != needed, "{scope}: {method} {path}: {status}");
            assert_ne!(status, 401, "{scope}: {method} {path}");
            tried += 1;
        }
        // Every character of the token changed in turn, in the short form only the last.
        let changed = (plan.size(token.len() - 1, 0)..token.len()).map(|at| {
            let other = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
            [&token[..at], other, &token[at + 1..]].concat()
        });
        let wrong = [hash.clone(), token[..token.len() - 1].to_owned(), format!("{token}0"), String::new()];
        for wrong in changed.chain(wrong) {
            let answer = ask(&wrong, "POST", "/v1/check", CHECK);
            assert_eq!(answer.status, 401, "{wrong}: {answer:?}");
            assert!(!answer.body.contains(scope), "{answer:?}");
            tried += 1;
        }
    }
    stop(server);
    tried
}

/// Writes from pages of other sites, to a server on loopback and to one on all addresses.
fn foreign_pages() -> u64 {
    let config = file_of("rules.yaml", RULES);
    let mut tried = 0;
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let server =
            ServerProcess::start_by(&mut command(&["serve", "--http", address, "--config", &config]));
        let ask = |headers: &[(&str, &str)]| {
            let headers = [&[("content-type", "application/json")], headers].concat();
            server.connect().ask_with("POST", "/v1/check", &headers, CHECK.as_bytes()).status
        };
        for header in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost.evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(ask(&[header]), 403, "{address}: {header:?}");
            tried += 1;
        }
        assert_eq!(ask(&[]), 200, "{address}: a program");
        assert_eq!(ask(&[("sec-fetch-site", "same-origin")]), 200, "{address}: its own page");
        stop(server);
    }
    tried
}

/// A new token, and its hash.
fn new_token() -> (String, String) {
    let out = run(&["token"], "").out;
    let hash = out.split("sha256: \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a hash");
    (out.lines().next().expect("a token").to_owned(), hash.to_owned())
}
