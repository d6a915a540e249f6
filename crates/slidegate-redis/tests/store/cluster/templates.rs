//! Names of keys and addresses that cannot work in a cluster.

use super::options_of;
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, Store, StoreError};
use slidegate_redis::{OpenError, OptionsError, RedisOptions, RedisStore};

#[test]
fn a_template_must_put_the_key_into_a_hash_tag() {
    let options = || RedisOptions::new("redis+cluster://10.0.0.1:7000").unwrap();
    let untagged =
        ["rlaas:{key}", "{rule}:{key}", "{{rule}}:{key}", "{}{{key}}", "{x}:{{key}}", "{key}}", "{{key}"];
    for template in untagged {
        let error = options().key_template(template).unwrap_err();
        assert!(matches!(&error, OptionsError::HashTag { template: given } if given == template), "{error}");
        for part in ["key_template", "hash tag", "write braces around it"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        // On one Redis it works.
        RedisOptions::new("redis://10.0.0.1").unwrap().key_template(template).unwrap();
    }
    for template in
        ["{{key}}", "rlaas:{{key}}:{rule}", "{rule}{{key}}", "{{rule}:{key}}", "a{b{key}c}", "}{{key}}"]
    {
        options().key_template(template).unwrap_or_else(|error| panic!("{template}: {error}"));
    }
    options().key_prefix("eu").unwrap();
}

#[test]
fn a_template_without_a_rule_works() {
    let cluster = RedisCluster::shared();
    run(async {
        let options = options_of(&cluster).0.key_template("rlaas:rate_limit:{{key}}").unwrap();
        let store = RedisStore::connect_with(&options).await.unwrap();
        let api = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let names = ["template-a", "template-b", "template-c"].map(|name| (&api, name, 1));
        assert!(store.check(Call::now(), &admission(&names)).await.unwrap().allowed());
        let keys = cluster.keys("rlaas:rate_limit:");
        assert_eq!(keys, ["a", "b", "c"].map(|name| format!("rlaas:rate_limit:{{template-{name}}}")));
    });
}

/// A node answers `MOVED` to a client that takes it for a single Redis.
#[test]
fn the_other_kind_of_server_is_named() {
    let cluster = RedisCluster::shared();
    let alone = RedisServer::start();
    run(async {
        let api = rule("api", &["5/1h"], Algorithm::SlidingLog);
        let mut redirected = 0;
        for node in cluster.nodes() {
            let store = store(&node.url()).await;
            if let Err(error) = ask(&store, Call::now(), &api, 1).await {
                assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
                assert!(error.to_string().contains("redis+cluster://"), "{error}");
                redirected += 1;
            }
        }
        assert_eq!(redirected, 2, "one node owns the slot");

        let url = format!("redis+cluster://127.0.0.1:{}", alone.port());
        let error = RedisStore::connect(&url).await.unwrap_err();
        assert!(matches!(error, OpenError::Connect(_)), "{error:?}");
        assert!(error.to_string().contains("no slot map"), "{error}");
        let error = RedisStore::connect("redis+cluster://127.0.0.1:1,127.0.0.1:2").await.unwrap_err();
        assert!(error.to_string().contains("no connection to Redis at 127.0.0.1:2"), "{error}");
    });
}
