//! The example that works on any store gives the same answers on all of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::process::{Command, Output};

#[path = "../../slidegate-redis/tests/store/common/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with the tests of slidegate-redis")]
mod server;

use server::RedisServer;

/// `cargo test` without `--test` builds the examples first.
fn any_store(args: &[&str]) -> Output {
    let program = env::current_exe().unwrap().with_file_name("../examples/any_store");
    let run = Command::new(&program).args(args).output();
    run.unwrap_or_else(|error| panic!("{}: {error}; `cargo build --examples`", program.display()))
}

/// The first words of every line.
fn answers(args: &[&str]) -> Vec<String> {
    let run = any_store(args);
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    let lines = String::from_utf8(run.stdout).unwrap();
    lines.lines().map(|line| line.split(", retry").next().unwrap().to_owned()).collect()
}

const FIRST: [&str; 4] = [
    "attempt 1: allowed, 4 left",
    "attempt 2: allowed, 3 left",
    "attempt 3: allowed, 2 left",
    "attempt 4: allowed, 1 left",
];
const SECOND: [&str; 4] =
    ["attempt 1: allowed, 0 left", "attempt 2: denied", "attempt 3: denied", "attempt 4: denied"];

#[test]
fn memory_starts_anew() {
    assert_eq!(answers(&[]), FIRST);
    assert_eq!(answers(&["--store", "memory"]), FIRST);
}

#[test]
fn a_file_and_a_redis_remember() {
    let folder = env::temp_dir().join(format!("slidegate-any-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let redis = RedisServer::start();
    for url in [format!("sqlite:{}", folder.join("limits.db").display()), redis.url()] {
        assert_eq!(answers(&["--store", &url]), FIRST, "{url}");
        assert_eq!(answers(&["--store", &url]), SECOND, "{url}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_wrong_flag_is_answered_with_the_usage() {
    let run = any_store(&["--stoer", "memory"]);
    assert!(!run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("usage: any_store"));
}
