//! A file that is deleted or replaced while processes have it open.

use std::path::Path;

use crate::common::child::{ChildOrders, ChildReport};
use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, StoreError, Update, UpdateError};
use slidegate::testing::block_on;
use slidegate_sqlite::{Durability, SqliteStore};

/// Peeks until a call fails, which takes half a second. Returns the error.
fn error_of(store: &SqliteStore, rule: &slidegate::Rule) -> String {
    let asked = admission(&[(rule, "alice", 1)]);
    loop {
        match block_on(slidegate::store::Store::peek(store, Call::now(), &asked)) {
            Ok(_) => std::thread::yield_now(),
            Err(error) => {
                assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
                return error.to_string();
            }
        }
    }
}

fn delete(path: &Path, suffixes: &[&str]) {
    for suffix in suffixes {
        std::fs::remove_file(format!("{}{suffix}", path.display())).unwrap();
    }
}

/// With its log, and without.
#[test]
fn a_server_and_a_command_share_the_limit_after_the_file_was_deleted() {
    for suffixes in [&["", "-wal", "-shm"][..], &[""]] {
        let directory = Directory::new();
        let path = directory.file();
        let rule = rule("sliding-log", &["5/400d"], Algorithm::SlidingLog);
        let server = open(&path);
        let receipt = check(&server, Call::now(), &rule, 4).receipt().unwrap();
        delete(&path, suffixes);
        let orders = ChildOrders {
            path: &path,
            durability: Durability::Full,
            rate: "5/400d",
            algorithm: 0,
            cost: 3,
            times: 1,
        };
        assert_eq!(orders.start().rest(), [ChildReport::Admitted(3)]);
        let error = error_of(&server, &rule);
        assert!(error.contains("quota.db was replaced"), "{error}");
        assert_eq!(used(&server, Call::now(), &rule), 3, "the command's units");
        let refunded =
            block_on(slidegate::store::Store::update(&server, Call::now(), Update::Refund(&receipt)));
        assert!(matches!(refunded, Err(UpdateError::Receipt(_))), "{refunded:?}");
        assert!(check(&server, Call::now(), &rule, 1).allowed());
        assert_eq!(orders.start().rest(), [ChildReport::Denied]);
    }
}
