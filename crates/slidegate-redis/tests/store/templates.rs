//! Templates without `{rule}` suit one rule; an admission of two is refused.

use crate::common::*;
use crate::foreign_values::assert_refused;
use slidegate::Algorithm;
use slidegate::store::{Call, Store, Update};
use slidegate_redis::RedisStore;

#[test]
fn two_rules_under_one_name_are_refused_before_anything_is_sent() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let [quota, search] = ["quota", "search"].map(|name| rule(name, &["50/1h"], Algorithm::SlidingLog));
    run(async {
        let options = options(&server.url()).key_template("rlaas:rate_limit:{key}").unwrap();
        let store = RedisStore::connect_with(&options).await.unwrap();
        let alone = admission(&[(&quota, "alice", 5), (&quota, "bob", 1)]);
        let receipt = store.check(Call::now(), &alone).await.unwrap().receipt().unwrap();
        assert_eq!(watch.keys(), ["rlaas:rate_limit:alice", "rlaas:rate_limit:bob"]);

        let both = admission(&[(&quota, "alice", 1), (&quota, "bob", 1), (&search, "alice", 1)]);
        let before = watch.everything();
        watch.reset_calls();
        let error = store.check(Call::now(), &both).await.unwrap_err();
        for part in ["`rlaas:rate_limit:{key}`", "`rlaas:rate_limit:alice`", "write {rule} into it"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_refused(Some(error), "check");
        assert_refused(store.peek(Call::now(), &both).await.err(), "peek");
        assert!(!watch.calls().contains_key("getrange"), "{:?}", watch.calls());
        assert_eq!(watch.everything(), before);

        // In a batch only this admission is refused.
        let answers = store.check_batch(Call::now(), &[alone.clone(), both, alone]).await;
        let used: Vec<_> =
            answers.into_iter().map(|answer| answer.ok().map(|decision| decision.used())).collect();
        assert_eq!(used, [Some(Some(10)), None, Some(Some(15))]);
        assert_eq!(store.update(Call::now(), Update::Refund(&receipt)).await.unwrap().units, 6);
    });
}
