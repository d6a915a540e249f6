//! A store that is opened while its Redis is down, loading, a replica, unreachable or behind a wrong password: calls fail
//! in time with the cause, and recover when it ends.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::common::sentinels::info;
use crate::common::*;
use redis::io::tcp::socket2::{Domain, Socket, Type};
use slidegate::store::{Call, RefusalCause, Store, StoreError};
use slidegate::{Algorithm, Rule};
use slidegate_redis::{RedisOptions, RedisStore};
use tokio::time::Instant;

/// Enough for a call on a busy machine.
const DEADLINE: Duration = Duration::from_secs(5);
const LATE: Duration = Duration::from_secs(20);

fn lazy(url: &str) -> RedisStore {
    RedisStore::lazy(&RedisOptions::new(url).unwrap().deadline(DEADLINE).unwrap()).unwrap()
}

fn rule_of_test() -> Rule {
    rule("api", &["50/400d"], Algorithm::SlidingLog)
}

/// Asks until the store answers; returns how long that took, and the failures.
async fn recovered(store: &RedisStore, rule: &Rule) -> (Duration, Vec<StoreError>) {
    let (begin, mut failures) = (Instant::now(), Vec::new());
    while begin.elapsed() < LATE {
        match ask(store, Call::now(), rule, 1).await {
            Ok(_) => return (begin.elapsed(), failures),
            Err(error) => failures.push(error),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no answer although the server runs: {:?}", failures.last());
}

#[test]
fn a_store_is_opened_before_its_server_starts() {
    let mut server = RedisServer::start();
    server.kill();
    let rule = rule_of_test();
    run(async {
        let store = lazy(&server.url().replace("redis://", "redis://:hunter2@"));
        assert!(store.is_remote());
        let begin = Instant::now();
        for _ in 0..200 {
            let error = ask(&store, Call::now(), &rule, 1).await.unwrap_err();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
            assert!(!format!("{error} {error:?} {store:?}").contains("hunter2"), "{error}");
        }
        assert!(begin.elapsed() < DEADLINE, "each took its deadline: {:?}", begin.elapsed());
        let store = lazy(&server.url());
        assert!(ask(&store, Call::now(), &rule, 1).await.is_err());
        server.restart();
        let (took, _) = recovered(&store, &rule).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(used(&store, Call::now(), &rule).await, 1, "no failed call was charged");
    });
}

#[test]
fn a_wrong_password_is_a_refusal_of_every_call() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let rule = rule_of_test();
    run(async {
        for login in ["", ":hunter3@", "bob:hunter3@"] {
            let store = lazy(&server.url().replace("redis://", &format!("redis://{login}")));
            let error = ask(&store, Call::now(), &rule, 1).await.unwrap_err();
            assert!(matches!(error, StoreError::Refused { cause: RefusalCause::Forbidden, .. }), "{error}");
            assert!(error.to_string().contains("correct the user and the password"), "{error}");
            assert!(!format!("{error:?} {store:?}").contains("hunter"), "{error}");
        }
        let store = lazy(&server.url().replace("redis://", "redis://:hunter2@"));
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
    });
}

/// A server that reads its data answers LOADING. A call that has the time gets its answer afterwards.
#[test]
fn a_loading_server_is_waited_for() {
    let mut server = RedisServer::start_with(&["--dbfilename", "dump.rdb", "--rdbcompression", "no"]);
    let fill = "for n = 1, 1500 do redis.call('SET', 'other:' .. n, string.rep('x', 20000)) end";
    server.command(&["EVAL", fill, "0"]);
    server.command(&["SAVE"]);
    server.kill();
    // It answers after every 2 MB, 100 keys with a pause of 300 us each.
    server.launch_loading(&["--key-load-delay", "300"]);
    let rule = rule_of_test();
    run(async {
        let store = RedisStore::lazy(&options(&server.url())).unwrap();
        assert!(check(&store, Call::now(), &rule, 1).await.allowed());
        assert!(info(&server, "errorstats").contains("errorstat_LOADING"), "it was asked too early");
        assert_eq!(used(&store, Call::now(), &rule).await, 1, "and executed the call once");
    });
}

#[test]
fn a_replica_refuses_until_it_is_promoted() {
    let primary = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &primary.port().to_string()]);
    let rule = rule_of_test();
    run(async {
        let store = lazy(&replica.url());
        for _ in 0..5 {
            let error = ask(&store, Call::now(), &rule, 1).await.unwrap_err();
            assert!(matches!(error, StoreError::Refused { cause: RefusalCause::ReadOnly, .. }), "{error}");
        }
        replica.command(&["REPLICAOF", "NO", "ONE"]);
        let (took, _) = recovered(&store, &rule).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(used(&store, Call::now(), &rule).await, 1);
    });
}

/// The system drops the packets of a connection that its queue has no room for.
struct BlackHole {
    listener: Socket,
    _queued: Vec<Socket>,
}

impl BlackHole {
    fn open() -> Self {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let queue = |_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            // It is under way, or dropped.
            let _ = socket.connect(&address);
            socket
        };
        let queued = (0..8).map(queue).collect();
        Self { listener, _queued: queued }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().as_socket().unwrap().port()
    }
}

#[test]
fn a_black_hole_costs_the_deadline_until_the_first_try_has_failed() {
    let hole = BlackHole::open();
    let rule = rule_of_test();
    run(async {
        let options = RedisOptions::new(&format!("redis://:hunter2@127.0.0.1:{}", hole.port())).unwrap();
        let store = RedisStore::lazy(&options.connect_timeout(Duration::from_millis(400)).unwrap()).unwrap();
        let error = ask(&store, Call::now(), &rule, 1).await.unwrap_err().to_string();
        assert!(error.contains("within 50ms") && error.contains("is not connected yet"), "{error}");
        let begin = Instant::now();
        let mut error = String::new();
        while !error.contains("was not ready within 400 ms") {
            error = ask(&store, Call::now(), &rule, 1).await.unwrap_err().to_string();
            assert!(begin.elapsed() < LATE, "{error}");
        }
        assert!(!error.contains("within 50ms"), "answered at once: {error}");
        // Then calls are answered at once, also while the next try is under way.
        let begin = Instant::now();
        for _ in 0..200 {
            assert!(ask(&store, Call::now(), &rule, 1).await.is_err());
        }
        assert!(begin.elapsed() < 200 * Duration::from_millis(50) / 2, "{:?}", begin.elapsed());
    });
}
