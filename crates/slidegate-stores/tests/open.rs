//! The same calls on every store that a URL can name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

use slidegate::{Limiter, Rule};
use slidegate_stores::{OpenError, StoreUrl, UrlError};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("slidegate-stores-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Three checks against a limit of two.
async fn three_checks(url: &str) -> Vec<(bool, Option<u64>)> {
    let limiter = Limiter::new(slidegate_stores::open(url).await.unwrap());
    let login = Rule::new("login", "2/1h").unwrap();
    let mut answers = Vec::new();
    for _ in 0..3 {
        let decision = limiter.check_async(&login, "alice").await.unwrap();
        answers.push((decision.allowed(), decision.remaining()));
    }
    answers
}

#[test]
fn memory_and_a_file_give_equal_answers() {
    let answers = [(true, Some(1)), (true, Some(0)), (false, Some(0))];
    assert_eq!(block_on(three_checks("memory")), answers);
    let directory = directory("alike");
    let url = format!("sqlite:{}", directory.join("state.db").display());
    assert_eq!(block_on(three_checks(&url)), answers);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn an_invalid_url_and_an_unreachable_store_are_different_errors() {
    let open = |url: &'static str| block_on(slidegate_stores::open(url)).unwrap_err();
    assert!(matches!(open("disk"), OpenError::Url(UrlError::Unknown { .. })));
    assert!(matches!(open("sqlite:"), OpenError::Url(UrlError::Sqlite(_))));
    assert!(matches!(open("sqlite:/nowhere/at/all/state.db"), OpenError::Sqlite(_)));
    let small = StoreUrl::default().memory_budget(1);
    assert!(matches!(block_on(small.open()), Err(OpenError::Budget(_))));
}
