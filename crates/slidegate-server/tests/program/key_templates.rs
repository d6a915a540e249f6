//! Templates of key names that a store cannot have: rules that would share their states, and keys of a cluster that would
//! lie anywhere.

use std::fs;

use serde_json::json;

use crate::program::{Run, command, file_of, output_of, run};
use crate::server::RedisServer;
use crate::server_process::ServerProcess;
use crate::store_settings::{ASK, DEADLINE, ONE_RULE, TEMPLATE, names, serve, validate};

/// What is wrong only with this kind of Redis.
#[test]
fn a_template_must_fit_a_cluster_wherever_it_is_given() {
    let (url, template) = ("redis+cluster://h1,h2", "a:{key}:{rule}");
    let words = "`a:{key}:{rule}` has no {key} in a hash tag";
    let field = validate(ONE_RULE, &format!("store: {{ url: '{url}', key_template: '{template}' }}"));
    assert!(field.err.starts_with("error: FILE:2:54: store.key_template: "), "{}", field.err);
    let parameter = validate(ONE_RULE, &format!("store: {url}?key_template={template}"));
    assert!(parameter.err.starts_with("error: FILE:2:8: store: key_template: "), "{}", parameter.err);
    let with = |args: &[&str]| output_of(command(args).env("SLIDEGATE_STORE_KEY_TEMPLATE", template));
    let served = with(&["serve", "--store", url]);
    let checked = with(&["check", "a", "--limit", "5/1m", "--store", url]);
    for Run { code, err, .. } in [field, parameter, served, checked] {
        assert_eq!((code, err.lines().count()), (2, 1), "{err}");
        assert!(err.contains(words), "{err}");
    }
}

#[test]
fn a_template_without_a_rule_is_for_one_rule() {
    let two = "rules: { a: { limit: 5/1m, on_store_error: deny }, b: { limit: 5/1m, on_store_error: deny } }";
    let overrides =
        "rules: { a: { limit: 5/1m, on_store_error: deny, overrides: { x: [1/1s, 9/1h], y: blocked } } }";
    let field = format!("store: {{ url: redis://h, key_template: '{TEMPLATE}' }}");
    let parameter = format!("store: redis://h?key_template={TEMPLATE}");
    for store in [&field, &parameter] {
        for rules in [ONE_RULE, overrides] {
            let Run { code, err, .. } = validate(rules, store);
            assert_eq!((code, err.as_str()), (0, ""), "{rules} {store}");
        }
        let column = if *store == field { 40 } else { 8 };
        for (rules, more, words) in [
            (
                two,
                "",
                "has no {rule}, so rules `a` and `b` would share their states; write {rule} into it, for example",
            ),
            (
                ONE_RULE,
                "\ninline_rules: true",
                "has no {rule}, so rule `a` and inline rules would share their states; write {rule}",
            ),
            (
                ONE_RULE,
                "\nrate-limiter: { window-size: 60, max-requests: 5, on_store_error: deny }",
                "so rules `a` and `default` would",
            ),
        ] {
            let Run { code, err, .. } = validate(rules, &format!("{store}{more}"));
            assert_eq!(code, 2, "{rules} {store}{more}");
            let start = format!("error: FILE:2:{column}: key_template: `{TEMPLATE}` ");
            assert!(err.starts_with(&start) && err.contains(words), "{rules} {store}{more}: {err}");
        }
    }
    let with_rule = validate(two, "store: { url: redis://h, key_template: '{rule}:{key}' }");
    assert_eq!((with_rule.code, with_rule.err.as_str()), (0, ""));
}

#[test]
fn no_command_lets_two_rules_share_their_states() {
    let redis = RedisServer::start();
    let url = format!("{}?key_template={TEMPLATE}", redis.url());
    let config = file_of("two.yaml", "rules: { a: { limit: 5/1m }, b: { limit: 5/1m } }\n");
    for (args, who) in [
        (&["serve"][..], "rule `default` and inline rules"),
        (&["serve", "--config", &config], "rules `a` and `b`"),
        (&["check", "x", "--rule", "a", "--config", &config], "rules `a` and `b`"),
        (
            &["check", "x", "--limit", "5/1m", "--also", "y=50/1h"],
            "rules `sliding-log/3600s` and `sliding-log/60s`",
        ),
        (&["reset", "x", "--rule", "a", "--config", &config], "rules `a` and `b`"),
        (&["replay", "--config", &config], "rules `a` and `b`"),
        (&["demo", "--live"], "a rule per algorithm"),
    ] {
        let Run { code, err, .. } = run(&[args, &["--store", &url]].concat(), "");
        assert_eq!((code, err.lines().count()), (2, 1), "{args:?}: {err}");
        assert!(err.contains("key_template") && err.contains(who), "{args:?}: {err}");
    }
    assert_eq!(names(&mut redis.connection()), [""; 0]);

    // One rule is fine, and inline rules of one window are one rule.
    let mut alone = command(&["serve", "--http", "127.0.0.1:0", "--store", &url]);
    let server = ServerProcess::start_by(alone.env("SLIDEGATE_INLINE_RULES", "false").envs([DEADLINE]));
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    let checked = run(&["check", "x", "--limit", "5/1m", "--also", "y=50/1m", "--store", &url], "");
    assert_eq!((checked.code, checked.err.as_str()), (0, ""));
    assert_eq!(names(&mut redis.connection()), ["alice", "x", "y"].map(|key| TEMPLATE.replace("{key}", key)));
}

/// The store is opened once, so a reload cannot bring a second rule to its names.
#[test]
fn a_reload_keeps_a_store_for_one_rule_to_one_rule() {
    let redis = RedisServer::start();
    let store = format!("store: {{ url: '{}', key_template: '{TEMPLATE}' }}\n", redis.url());
    let one = format!("rules: {{ default: {{ limit: 5/1h }} }}\n{store}");
    let config = file_of("rules.yaml", &one);
    let server = serve(&["--config", &config]);
    assert_eq!(server.ask("POST", "/v1/check", ASK).status, 200);
    for rules in ["default: { limit: 5/1h }, more: { limit: 5/1h }", "a: { limit: 5/1h }, b: { limit: 5/1h }"]
    {
        // Without its template in the file too: the store of the start stays.
        for store in [&store[..], ""] {
            fs::write(&config, format!("rules: {{ {rules} }}\n{store}")).unwrap();
            let refused = server.ask("POST", "/v1/admin/reload", "");
            assert_eq!(refused.status, 422, "{}", refused.body);
            assert!(refused.body.contains("would share their states"), "{}", refused.body);
        }
    }
    fs::write(&config, one.replace("5/1h", "4/1h").replace("key_template: '", "key_template: 'x")).unwrap();
    let reloaded = server.ask("POST", "/v1/admin/reload", "");
    assert_eq!(reloaded.status, 200, "{}", reloaded.body);
    assert!(reloaded.body.contains("store.key_template"), "it needs a restart: {}", reloaded.body);
    assert_eq!(server.ask("POST", "/v1/check", ASK).json()["remaining"], json!(2));
}
