//! The secret that receipts are signed with: drawn once, and shared by all stores of the same keys.

use slidegate::store::{Store, StoreError};
use slidegate_redis::LogLayout;

use crate::common::*;

#[tokio::test]
async fn stores_of_the_same_keys_share_one_secret() {
    let server = RedisServer::start();
    let (first, second) = (store(&server.url()).await, store(&server.url()).await);
    // Both ask at once, and one secret wins.
    let (one, other) = tokio::join!(first.secret(), second.secret());
    let secret = one.unwrap().expect("a shared store has one");
    assert_eq!(Some(secret), other.unwrap());
    assert_eq!(Some(secret), store(&server.url()).await.secret().await.unwrap(), "later too");
    assert!(secret.iter().any(|&byte| byte != secret[0]), "drawn at random: {secret:?}");
    let elsewhere = prefixed(&server.url(), "eu", LogLayout::Packed).await;
    assert_ne!(Some(secret), elsewhere.secret().await.unwrap(), "other keys are another store");
}

#[tokio::test]
async fn a_value_that_is_no_secret_is_left_alone() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    let store = store(&server.url()).await;
    for command in [&["SET", "sg:{}:%secret", "short"][..], &["RPUSH", "sg:{}:%secret", "a", "b"]] {
        server.command(&["DEL", "sg:{}:%secret"]);
        server.command(command);
        let before = watch.everything();
        let error = store.secret().await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("delete"), "{error}");
        assert_eq!(watch.everything(), before);
    }
}
