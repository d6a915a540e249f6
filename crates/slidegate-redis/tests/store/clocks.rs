//! The store's clock decides: callers whose clocks disagree or are set back never get more.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::common::*;
use slidegate::store::Call;
use slidegate::testing::Rng;

const WRITERS: u64 = 8;
const HOUR_US: u64 = 3_600 * SECOND_US;

/// Eight writers whose clocks are up to 1.4 s apart: for a late one time stands still.
#[test]
fn row_11_writers_with_clocks_apart_are_never_over() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let rule = rule("api", &["50/1h"], algorithm);
                let mut rng = Rng::new(11);
                let mut admitted = 0;
                for request in 0..200 {
                    let skew_us = rng.below(WRITERS) * 1_400 * MILLISECOND_US / (WRITERS - 1);
                    let when = Call::at_us(BOUNDARY_US + request * MILLISECOND_US + skew_us);
                    admitted += u64::from(check(&store, when, &rule, 1).await.allowed());
                }
                assert_eq!(admitted, 50, "{algorithm}");
            }
        }
    });
}

/// A clock that is set back, as by a failover, admits no more. Set forward, entries leave.
#[test]
fn row_11_steps_of_an_hour_admit_no_more() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for algorithm in algorithms_of(layout) {
                watch.command(&["FLUSHALL"]);
                let rule = rule("api", &["50/10m"], algorithm);
                check(&store, Call::at_us(BOUNDARY_US), &rule, 50).await;
                for back_us in [1, SECOND_US, HOUR_US] {
                    let when = Call::at_us(BOUNDARY_US - back_us);
                    let decision = check(&store, when, &rule, 1).await;
                    assert!(!decision.allowed(), "{algorithm}: set back by {back_us} us");
                    assert_eq!(used(&store, when, &rule).await, 50, "{algorithm}: set back by {back_us} us");
                }
                let decision = check(&store, Call::at_us(BOUNDARY_US + HOUR_US), &rule, 50).await;
                assert!(decision.allowed(), "{algorithm}: an hour later everything has left");
            }
        }
    });
}

/// The caller sends no instant: the script reads the clock of Redis.
#[test]
fn row_11_no_clock_of_a_caller_is_sent() {
    let server = RedisServer::start();
    run(async {
        for (layout, store) in stores(&server.url()).await {
            for (number, algorithm) in algorithms_of(layout).into_iter().enumerate() {
                let rule = rule(&format!("{layout:?}-{number}"), &["50/1h"], algorithm);
                // Loads the script, so that the next call is an EVALSHA.
                check(&store, Call::now(), &rule, 1).await;
                let mut monitor = monitor(&server);
                check(&store, Call::now(), &rule, 1).await;
                server.command(&["ECHO", "end"]);
                let seen = lines_until(&mut monitor, "\"ECHO\" \"end\"");
                let sent = seen.iter().find(|line| line.contains("\"EVALSHA\"")).expect("one call");
                // After the script, the number of keys and the key comes the time, which is empty.
                assert!(sent.contains(&format!(":{}\" \"\" ", rule.name())), "{algorithm}: {sent}");
                assert!(seen.iter().any(|line| line.contains("lua] \"TIME\"")), "{algorithm}: {seen:?}");
                let times = seen.iter().filter(|line| line.contains("\"TIME\"")).count();
                assert_eq!(times, 1, "{algorithm}: one reading of the clock per call");
            }
        }
    });
}

/// A connection that receives every command.
fn monitor(server: &RedisServer) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(stream);
    let mut answer = String::new();
    lines.read_line(&mut answer).unwrap();
    assert_eq!(answer, "+OK\r\n");
    lines
}

fn lines_until(monitor: &mut BufReader<TcpStream>, last: &str) -> Vec<String> {
    let lines = monitor.lines().map(Result::unwrap);
    lines.take_while(|line| !line.contains(last)).collect()
}
