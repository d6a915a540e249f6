//! Scripts that Redis knows, does not know, or has flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;

use super::server::RedisServer;
use super::{count, counted, echo, echoed, link, one, options};
use crate::link::Link;

#[tokio::test]
async fn an_unknown_script_is_loaded_in_the_same_call() {
    let server = RedisServer::start();
    let link = link(&server).await;
    assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(1)));
    assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(2)));
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(link.call(None, count("k")).await, Ok(Value::Int(3)));
    let stats = format!("{:?}", server.command(&["INFO", "commandstats"]));
    assert!(stats.contains("cmdstat_eval:calls=2,"), "the text is sent once per flush: {stats}");
}

#[tokio::test]
async fn in_a_batch_only_calls_of_unknown_scripts_are_sent_again() {
    let server = RedisServer::start();
    let link = link(&server).await;
    for round in 0..3 {
        // `count` is known and `echo` is not: the known one runs once, in order.
        server.command(&["SCRIPT", "FLUSH"]);
        let before = counted(&server, "k");
        link.call(None, count("k")).await.unwrap();
        let calls =
            vec![count("k"), echo(b"a", b"1"), count("k"), one(), echo(b"b", b"2"), count("k"), one()];
        let answers = link.call_all(None, calls).await;
        let expected = [
            Value::Int(before + 2),
            echoed(b"a", b"1"),
            Value::Int(before + 3),
            Value::Int(1),
            echoed(b"b", b"2"),
            Value::Int(before + 4),
            Value::Int(1),
        ];
        assert_eq!(answers, expected.map(Ok), "round {round}");
    }
    assert_eq!(counted(&server, "k"), 12);
    let stats = format!("{:?}", server.command(&["INFO", "commandstats"]));
    assert!(
        stats.contains("cmdstat_eval:calls=9,"),
        "three texts per round, for any number of calls: {stats}"
    );
}

#[tokio::test]
async fn batches_of_any_size_are_answered_in_order() {
    let server = RedisServer::start();
    let link = link(&server).await;
    assert_eq!(link.call_all(None, Vec::new()).await, []);
    for calls in [1, 2, 255, 256, 257, 1_000] {
        server.command(&["DEL", "k"]);
        let answers = link.call_all(None, vec![count("k"); calls]).await;
        let expected = (1..).take(calls).map(|number| Ok(Value::Int(number)));
        assert!(answers.into_iter().eq(expected), "{calls} calls");
    }
    let large = vec![b'x'; 100_000];
    let answers = link.call_all(None, vec![echo(b"k", &large); 20]).await;
    assert!(answers.into_iter().all(|answer| answer == Ok(echoed(b"k", &large))));
}

#[tokio::test]
async fn keys_and_arguments_are_bytes() {
    let server = RedisServer::start();
    let link = link(&server).await;
    for bytes in [&b""[..], b"\0", b"line\r\n", b"\xff\xfe", b"{a}%*"] {
        assert_eq!(link.call(None, echo(bytes, bytes)).await, Ok(echoed(bytes, bytes)));
    }
}

#[tokio::test]
async fn a_scan_finds_every_key_that_matches() {
    let server = RedisServer::start();
    let link = link(&server).await;
    let made: Vec<_> = (0..1_500).map(|number| count(&format!("sg:{{{number}}}:api"))).collect();
    link.call_all(None, made).await;
    link.call(None, count("sg:{1}:other")).await.unwrap();
    let (mut found, mut cursor, mut steps) = (Vec::new(), 0, 0);
    loop {
        let (next, names) = link.scan(None, b"sg:{*}:api", cursor).await.unwrap();
        found.extend(names);
        (cursor, steps) = (next, steps + 1);
        if cursor == 0 {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 1_500);
    assert!(steps > 1, "a step must not block the server");
}

/// Scripts are flushed all the time, and every call is executed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_is_executed_once_while_scripts_are_flushed() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server).await);
    let stop = Arc::new(AtomicBool::new(false));
    let mut flushing = server.connection();
    let flusher = tokio::spawn({
        let stop = Arc::clone(&stop);
        async move {
            let mut flushes = 0;
            while !stop.load(Ordering::Relaxed) {
                redis::cmd("SCRIPT").arg("FLUSH").exec(&mut flushing).unwrap();
                flushes += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            flushes
        }
    });
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            for _ in 0..50 {
                if caller % 2 == 0 {
                    link.call(None, count("k")).await.unwrap();
                } else {
                    for answer in link.call_all(None, vec![count("k"); 5]).await {
                        answer.unwrap();
                    }
                }
            }
        });
    }
    callers.join_all().await;
    stop.store(true, Ordering::Relaxed);
    assert!(flusher.await.unwrap() > 0);
    assert_eq!(counted(&server, "k"), 8 * 50 + 8 * 50 * 5);
}

/// Calls made during a round trip share the next one.
#[tokio::test]
async fn concurrent_calls_share_round_trips() {
    let server = RedisServer::start();
    let link = Arc::new(Link::connect(&options(&server.url()).connections(1).unwrap()).await.unwrap());
    link.call(None, one()).await.unwrap();
    let reads = || {
        let info = format!("{:?}", server.command(&["INFO", "stats"]));
        let (_, after) = info.split_once("total_reads_processed:").unwrap();
        after.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()
    };
    let before = reads();
    let mut callers = JoinSet::new();
    for _ in 0..200 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.call(None, one()).await.unwrap() });
    }
    callers.join_all().await;
    let reads = reads() - before;
    assert!(reads <= 20, "{reads} reads for 200 calls");
}
