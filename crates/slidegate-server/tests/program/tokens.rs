//! Tokens with scopes: what each may do, and how one replaces another.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::client::HttpAnswer;
use crate::program::{Run, command, file_of, output_of, run};
use crate::server_process::ServerProcess;

const CHECK: &str = r#"{"rule":"api","key":"alice"}"#;

/// A new token, and its hash.
fn new_token() -> (String, String) {
    let Run { code, out, err } = run(&["token"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    let token = out.lines().next().expect("a token").to_owned();
    let hash = out.split("sha256: \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a hash");
    (token, hash.to_owned())
}

/// The text of a configuration with these tokens.
fn config(tokens: &[(&str, &str, &str)]) -> String {
    let lines = tokens
        .iter()
        .map(|(name, hash, scopes)| format!("  {name}: {{ sha256: \"{hash}\", scopes: [{scopes}] }}\n"));
    format!("rules: {{ api: {{ limit: 5/1m }} }}\ntokens:\n{}", lines.collect::<String>())
}

fn ask(server: &ServerProcess, (method, path): (&str, &str), token: &str, body: &str) -> HttpAnswer {
    let authorization = format!("Bearer {token}");
    let headers = [("content-type", "application/json"), ("authorization", authorization.as_str())];
    server.connect().ask_with(method, path, &headers, body.as_bytes())
}

#[test]
fn a_printed_token_is_random_and_its_lines_are_a_configuration() {
    let printed = run(&["token"], "").out;
    let (token, tokens) = printed.split_once('\n').expect("lines");
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{printed}");
    assert_ne!(token, new_token().0);
    let file = file_of("rules.yaml", format!("rules: {{ api: {{ limit: 5/1m }} }}\n{tokens}"));
    let described = run(&["validate", &file], "");
    assert_eq!((described.code, described.err.as_str()), (0, ""));
    assert!(described.out.contains("\ntoken web: check\n"), "{}", described.out);
}

#[test]
fn a_token_does_what_its_scopes_permit_and_no_more() {
    let tokens = ["check", "read", "admin"].map(|scope| (scope, new_token()));
    let listed: Vec<_> = tokens.iter().map(|(scope, (_, hash))| (*scope, hash.as_str(), *scope)).collect();
    let server = ServerProcess::start(&["--config", &file_of("rules.yaml", config(&listed))]);
    for (request, body, needed) in [
        (("POST", "/v1/check"), CHECK, "check"),
        (("POST", "/v1/peek"), CHECK, "check"),
        (("POST", "/v1/explain"), CHECK, "read"),
        (("GET", "/v1/rules"), "", "read"),
        (("GET", "/metrics"), "", "read"),
        (("GET", "/readyz?verbose"), "", "read"),
        (("POST", "/v1/reset"), CHECK, "admin"),
        (("POST", "/v1/admin/reload"), "", "admin"),
    ] {
        for (scope, (token, _)) in &tokens {
            let answer = ask(&server, request, token, body);
            if *scope == needed {
                assert_eq!(answer.status, 200, "{request:?} {scope}: {answer:?}");
                continue;
            }
            assert_eq!((answer.status, answer.problem().as_str()), (403, "scope"), "{request:?} {scope}");
            assert!(answer.json()["detail"].as_str().unwrap().contains(&format!("`{needed}`")), "{answer:?}");
            assert!(!answer.body.contains(&format!("`{scope}`")), "the token stays unnamed: {answer:?}");
        }
        assert_eq!(server.ask(request.0, request.1, body).status, 401, "{request:?} without a token");
    }
    assert_eq!(server.ask("GET", "/readyz", "").status, 200, "orchestrators have no token");
}

/// Tokens that differ in the last byte, and short ones, whose hash says nothing about their length.
#[test]
fn a_nearly_right_or_a_short_token_is_refused() {
    let (token, hash) = new_token();
    let short = "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7"; // of `hunter2`
    let text = config(&[("web", &hash, "check"), ("short", short, "check")]);
    let server = ServerProcess::start(&["--config", &file_of("rules.yaml", text)]);
    let last = if token.ends_with('0') { "1" } else { "0" };
    let nearly = format!("{}{last}", &token[..token.len() - 1]);
    for wrong in [&*nearly, &token[..token.len() - 1], "hunter2", &hash, ""] {
        let answer = ask(&server, ("POST", "/v1/check"), wrong, CHECK);
        assert_eq!((answer.status, answer.problem().as_str()), (401, "unauthorized"), "{wrong}");
    }
    assert_eq!(ask(&server, ("POST", "/v1/check"), &token, CHECK).json()["used"], json!(1));
}

#[test]
fn a_reload_replaces_a_token_without_a_gap() {
    let (old, new, admin) = (new_token(), new_token(), new_token());
    let listed = |tokens: &[(&str, &str)]| {
        let mut all = vec![("ops", admin.1.as_str(), "admin")];
        all.extend(tokens.iter().map(|&(name, hash)| (name, hash, "check")));
        config(&all)
    };
    let file = file_of("rules.yaml", listed(&[("web-1", &old.1)]));
    let server = ServerProcess::start(&["--config", &file]);
    let passes = |token: &str| ask(&server, ("POST", "/v1/peek"), token, CHECK).status == 200;
    assert_eq!((passes(&old.0), passes(&new.0)), (true, false));
    for (tokens, expected) in [
        (&[("web-1", old.1.as_str()), ("web-2", &new.1)][..], (true, true)),
        (&[("web-2", &new.1)], (false, true)),
    ] {
        fs::write(&file, listed(tokens)).unwrap();
        let reloaded = ask(&server, ("POST", "/v1/admin/reload"), &admin.0, "");
        assert_eq!((reloaded.status, &reloaded.json()["needs_restart"]), (200, &json!([])), "{reloaded:?}");
        assert_eq!((passes(&old.0), passes(&new.0)), expected);
    }
    fs::write(&file, listed(&[("web-2", "banana")])).unwrap();
    assert_eq!(ask(&server, ("POST", "/v1/admin/reload"), &admin.0, "").status, 422);
    assert!(passes(&new.0), "the old tokens stay in force");
}

#[test]
fn mistakes_in_tokens_have_a_position_and_a_remedy() {
    let hash = "a".repeat(64);
    let secret = "5".repeat(63);
    for (tokens, position, words) in [
        ("5".to_owned(), "2:9", "tokens: expected tokens by name, found `5`"),
        ("{}".to_owned(), "2:9", "tokens: 0 given; give 1 to 64"),
        ("{ web: HASH }".to_owned(), "2:16", "token `web`: expected fields, found `HASH`"),
        ("{ web: {} }".to_owned(), "2:11", "token `web`: sha256: is missing; `slidegate token` prints one"),
        (
            "{ web: {} }".to_owned(),
            "2:11",
            "token `web`: scopes: is missing; write some of check, read, admin",
        ),
        (
            format!("{{ web: {{ sha256: {secret}, scopes: [check] }} }}"),
            "2:26",
            "sha256: is not the SHA-256 hash",
        ),
        (
            format!("{{ web: {{ sha256: {hash}g, scopes: [check] }} }}"),
            "2:26",
            "64 hexadecimal digits; `slidegate",
        ),
        (
            format!("{{ web: {{ sha256: {hash}, scopes: [check, amdin] }} }}"),
            "2:108",
            "token `web`: scopes: `amdin` is unknown; did you mean `admin`?",
        ),
        (format!("{{ web: {{ sha256: {hash}, scopes: [read, read] }} }}"), "2:107", "`read` is given twice"),
        (format!("{{ web: {{ sha256: {hash}, scopes: [] }} }}"), "2:100", "scopes: is empty; write some of"),
        (format!("{{ web: {{ sha265: {hash}, scopes: [read] }} }}"), "2:18", "did you mean `sha256`?"),
        (
            format!("{{ a: {{ sha256: {hash}, scopes: [read] }}, b: {{ sha256: {hash}, scopes: [read] }} }}"),
            "2:108",
            "token `b`: sha256: is also that of token `a`; remove one of them",
        ),
        (
            format!("{{ 'a b': {{ sha256: {hash}, scopes: [read] }} }}"),
            "2:11",
            "token `a b`: is not a name; write 1 to",
        ),
    ] {
        let file = file_of("tokens.yaml", format!("rules: {{ api: {{ limit: 5/1m }} }}\ntokens: {tokens}\n"));
        let Run { code, err, .. } = run(&["validate", &file], "");
        assert_eq!(code, 2, "{tokens}");
        let line = err.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{tokens}: {err}"));
        assert!(line.contains(&format!("tokens.yaml:{position}: ")), "{line}");
        assert!(
            !err.contains(&secret) && !err.contains(&hash),
            "a text in place of a hash may be the token: {err}"
        );
    }
}

#[test]
fn a_secret_file_that_others_may_open_is_a_warning() {
    let secret = file_of("secret", "0123456789abcdef\n");
    for setting in ["token_file", "hash_keys_secret_file"] {
        let text = format!("rules: {{ api: {{ limit: 5/1m }} }}\n{setting}: {secret}\n");
        let file = file_of("rules.yaml", text);
        for (mode, warned) in [(0o644, true), (0o640, true), (0o604, true), (0o600, false), (0o400, false)] {
            fs::set_permissions(&secret, fs::Permissions::from_mode(mode)).unwrap();
            let Run { code, err, .. } = run(&["validate", &file], "");
            assert_eq!(code, 0, "{err}");
            let warning = format!("{setting}: other users may open `");
            assert_eq!(err.contains(&warning), warned, "{setting} {mode:o}: {err}");
        }
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn a_command_says_which_scope_its_token_lacks() {
    let (token, hash) = new_token();
    let file = file_of("rules.yaml", config(&[("web", &hash, "check")]));
    let server = ServerProcess::start(&["--config", &file]);
    let url = format!("http://{}", server.address);
    let with = |command_name: &str| {
        let args = [command_name, "alice", "--rule", "api", "--store", &url];
        output_of(command(&args).env("SLIDEGATE_TOKEN", &token))
    };
    assert_eq!(with("check").code, 0);
    let Run { code, err, .. } = with("reset");
    let expected = "error: authorization: lacks the scope `admin`; send a token that has it\n";
    assert_eq!((code, err.as_str()), (2, expected));
}
