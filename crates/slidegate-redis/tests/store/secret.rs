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

/// Processes from before and after a loss of data accept each other's receipts once each has shared its secret.
#[tokio::test]
async fn a_lost_secret_is_restored_or_added() {
    let server = RedisServer::start();
    let (early, late) = (store(&server.url()).await, store(&server.url()).await);
    let first = early.secret().await.unwrap().unwrap();
    server.command(&["FLUSHALL"]);
    assert_eq!(early.share_secret(&first).await, Ok(vec![first]), "restored");
    assert_eq!(late.secret().await, Ok(Some(first)), "by a process that runs");

    server.command(&["FLUSHALL"]);
    let second = late.secret().await.unwrap().unwrap();
    assert_ne!(second, first, "nobody knows it any more");
    assert_eq!(early.secret().await, Ok(Some(second)), "asking adds none");
    assert_eq!(early.share_secret(&first).await, Ok(vec![second, first]));
    for _ in 0..2 {
        assert_eq!(late.share_secret(&second).await, Ok(vec![second, first]));
    }
    assert_eq!(store(&server.url()).await.secret().await, Ok(Some(second)), "one of them signs");
}

#[tokio::test]
async fn the_number_of_secrets_is_bounded() {
    let server = RedisServer::start();
    let store = store(&server.url()).await;
    let mut shared = Vec::new();
    for secret in 1..=20 {
        shared = store.share_secret(&[secret; 32]).await.unwrap();
        assert!(shared.contains(&[secret; 32]));
    }
    let kept: Vec<u8> = shared.iter().map(|secret| secret[0]).collect();
    assert_eq!(kept, [1, 14, 15, 16, 17, 18, 19, 20], "the one that signs, and the newest");
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
        assert!(store.share_secret(&[7; 32]).await.is_err());
        let error = store.secret().await.unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("delete"), "{error}");
        assert_eq!(watch.everything(), before);
    }
}
