//! Error replies of Redis: the call was not executed, and the next one works.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{ConnectionLike, Value};
use slidegate::store::{RefusalCause, StoreError};

use super::server::RedisServer;
use super::stub::{Stub, handshake_reply};
use super::{AMPLE, count, counted, link, one, options};
use crate::link::{Link, ScriptCall};
use crate::scripts::Script;

static FOREIGN: LazyLock<Script> =
    LazyLock::new(|| Script::new("foreign", "return redis.error_reply('SLIDEGATE sg:{a}:b is not ours')"));
static BROKEN: LazyLock<Script> = LazyLock::new(|| Script::new("broken", "return nothing_of_that_name + 1"));
static MALFORMED: LazyLock<Script> = LazyLock::new(|| Script::new("malformed", "this is no script"));

fn bare(script: &'static Script) -> ScriptCall {
    ScriptCall { script, keys: Vec::new(), args: Vec::new() }
}

#[track_caller]
fn assert_refused(answer: Result<Value, StoreError>, text: &str) {
    match answer {
        Err(StoreError::Refused { why, .. }) => assert!(why.contains(text), "{why}"),
        other => panic!("{text}: {other:?}"),
    }
}

#[tokio::test]
async fn a_value_of_another_program_is_left_alone() {
    let server = RedisServer::start();
    let link = link(&server).await;
    server.command(&["RPUSH", "list", "a"]);
    assert_refused(link.call(None, count("list")).await, "WRONGTYPE");
    let answers = link.call_all(None, vec![count("k"), count("list"), count("k")]).await;
    assert_eq!((&answers[0], &answers[2]), (&Ok(Value::Int(1)), &Ok(Value::Int(2))));
    assert_refused(answers[1].clone(), "key_prefix");
    assert_eq!(server.command(&["LLEN", "list"]), Value::Int(1));
    assert_refused(link.call(None, bare(&FOREIGN)).await, "SLIDEGATE sg:{a}:b is not ours");
}

#[tokio::test]
async fn a_script_error_is_a_refusal() {
    let server = RedisServer::start();
    let link = link(&server).await;
    for script in [&*BROKEN, &*MALFORMED] {
        assert_refused(link.call(None, bare(script)).await, "ERR");
        let answers = link.call_all(None, vec![bare(script), one(), bare(script)]).await;
        assert_eq!(answers[1], Ok(Value::Int(1)));
        assert_refused(answers[0].clone(), "ERR");
        assert_refused(answers[2].clone(), "ERR");
    }
}

#[tokio::test]
async fn a_server_without_memory_refuses_writes_only() {
    let server = RedisServer::start_with(&["--maxmemory-policy", "noeviction"]);
    let link = link(&server).await;
    link.call(None, count("k")).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_refused(link.call(None, count("k")).await, "raise maxmemory");
    assert_refused(link.call(None, count("new")).await, "OOM");
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!((counted(&server, "k"), counted(&server, "new")), (1, 0));
    assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(2)));
}

#[tokio::test]
async fn a_user_without_permission_gets_the_permission_to_grant() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "limiter", "on", ">hunter2", "~sg:*", "+@all", "-eval"]);
    let url = server.url().replace("redis://", "redis://limiter:hunter2@");
    let link = Link::connect(&options(&url)).await.unwrap();
    assert_refused(link.call(None, one()).await, "NOPERM");
    server.command(&["ACL", "SETUSER", "limiter", "+eval"]);
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_refused(link.call(None, count("other")).await, "ACL SETUSER");
    assert_eq!(link.call(None, count("sg:k")).await, Ok(Value::Int(1)));
}

/// Every call is retried once over a new connection, as the address may lead to the new primary by then.
#[tokio::test]
async fn a_replica_refuses_until_it_becomes_the_primary() {
    let server = RedisServer::start();
    let link = Link::connect(&options(&server.url()).connections(1).unwrap()).await.unwrap();
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    for _ in 0..3 {
        match link.call(None, count("k")).await {
            Err(StoreError::Refused { cause: RefusalCause::ReadOnly, why }) => {
                assert!(why.contains("address of the primary"), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }
    server.command(&["REPLICAOF", "NO", "ONE"]);
    // Until the pause before the next connection has passed, calls are answered at once.
    let back = async { while link.call(None, count("k")).await.is_err() {} };
    tokio::time::timeout(AMPLE, back).await.unwrap();
    assert_eq!(counted(&server, "k"), 1);
}

/// The call that finds a replica is executed by the primary that its address leads to a moment later.
#[tokio::test]
async fn a_call_to_a_replica_is_retried_over_a_new_connection() {
    static ASKED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let stub = Stub::start(|words| match &*words[0] {
        "EVALSHA" if ASKED.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 => {
            Some("-READONLY You can't write against a read only replica.\r\n".into())
        }
        "EVALSHA" => Some(":1\r\n".into()),
        _ => handshake_reply(words, "7.0.15"),
    });
    let stub = stub.await;
    let link = Link::connect(&options(&stub.url()).connections(1).unwrap()).await.unwrap();
    assert_eq!(link.call(None, one()).await, Ok(Value::Int(1)));
    assert_eq!((stub.received("EVALSHA"), stub.received("HELLO")), (2, 2));
}

/// While another client's script runs, nothing is executed. A call that can wait is executed once afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_is_retried_until_the_deadline() {
    // Redis reports BUSY once a script has run this many milliseconds.
    let server = RedisServer::start_with(&["--lua-time-limit", "1"]);
    let impatient = options(&server.url()).deadline(Duration::from_millis(300)).unwrap();
    let impatient = Link::connect(&impatient).await.unwrap();
    let patient = std::sync::Arc::new(link(&server).await);
    let mut endless = server.connection();
    let running =
        std::thread::spawn(move || redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut endless));
    let mut polling = server.connection();
    let mut busy =
        || format!("{:?}", polling.req_command(&redis::cmd("GET").arg("k").take())).contains("BUSY");
    tokio::time::timeout(AMPLE, async {
        while !busy() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap();
    let waiting = tokio::spawn({
        let patient = std::sync::Arc::clone(&patient);
        async move { patient.call(None, count("k")).await }
    });
    // A call in flight when the deadline passes is ambiguous, so it may take several tries.
    let reported = async {
        loop {
            match impatient.call(None, count("k")).await {
                Err(StoreError::Unavailable { why }) if why.contains("SCRIPT KILL") => break,
                Err(StoreError::Unavailable { .. } | StoreError::Ambiguous { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(AMPLE, reported).await.unwrap();
    server.command(&["SCRIPT", "KILL"]);
    assert!(running.join().unwrap().is_err());
    assert_eq!(waiting.await.unwrap(), Ok(Value::Int(1)), "no other call was executed");
    assert_eq!(patient.call(None, count("k")).await, Ok(Value::Int(2)));
}
