//! Sorted sets: the commands of a decision, and their limits. Charges of more than a million units, and times that a score
//! cannot hold exactly, are refused, and nothing is charged.

use crate::common::*;
use crate::foreign_values::assert_refused;
use slidegate::Algorithm;
use slidegate::store::Call;

#[test]
fn charges_that_a_sorted_set_cannot_hold_are_refused() {
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let (_, store) = stores(&server.url()).await.remove(1);
        let large = rule("large", &["2000000/1h"], Algorithm::SlidingLog);
        check(&store, Call::now(), &large, 2_000).await;
        let before = watch.everything();
        let error = ask(&store, Call::now(), &large, 1_000_001).await.unwrap_err();
        assert!(error.to_string().contains("use the packed layout"), "{error}");
        assert_refused(Some(error), "units");
        // The year 2252, and 2^53 microseconds.
        for at_us in [8_900_000_000_000_000, 1 << 53] {
            assert_refused(ask(&store, Call::at_us(at_us), &large, 1).await.err(), "time");
        }
        assert_eq!(watch.everything(), before);
        assert_eq!(used(&store, Call::now(), &large).await, 2_000);
    });
}

/// A decision that falls through to the general part of the script takes more commands, and three times the time.
#[test]
fn decisions_on_one_limit_take_few_commands() {
    const BEGIN: &[&str] = &["get", "zcard", "zadd", "set", "pexpire"];
    const CHARGE: &[&str] = &["get", "zcount", "zadd", "zremrangebyscore", "set", "pexpire"];
    const DENIAL: &[&str] = &["get", "zcount", "zrange"];
    let server = RedisServer::start();
    let mut watch = ServerWatch::new(&server);
    run(async {
        let (_, store) = stores(&server.url()).await.remove(1);
        let log = rule("api", &["1500/1m"], Algorithm::SlidingLog);
        let wider = rule("api", &["1501/1m"], Algorithm::SlidingLog);
        // The first call loads the script.
        check(&store, Call::at_us(BOUNDARY_US), &rule("other", &["5/1m"], Algorithm::SlidingLog), 1).await;
        let steps = [
            (&log, 1, BEGIN),
            (&log, 1, CHARGE),
            (&log, 999, CHARGE),
            (&log, 500, DENIAL),
            (&wider, 500, CHARGE),
            (&wider, 1, DENIAL),
        ];
        for (number, (rule, cost, commands)) in (1..).zip(steps) {
            watch.reset_calls();
            let decision = check(&store, Call::at_us(BOUNDARY_US + number), rule, cost).await;
            assert_eq!(decision.allowed(), commands != DENIAL, "step {number}");
            let calls = watch.calls();
            let mut expected = commands.to_vec();
            expected.sort_unstable();
            assert_eq!(calls.keys().collect::<Vec<_>>(), expected, "step {number}");
            assert!(calls.values().all(|&count| count == 1), "step {number}: {calls:?}");
        }
    });
}
