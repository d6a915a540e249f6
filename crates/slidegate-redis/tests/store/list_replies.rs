//! The scripts for other languages reply with a list, which has the numbers of the store.

use crate::common::printed::form;
use crate::common::server::command;
use crate::common::*;
use redis::Value;
use slidegate::Rule;
use slidegate::store::{Call, Store};
use slidegate::testing::Rng;
use slidegate_redis::scripts::{self, Script};

fn call_script(
    connection: &mut redis::Connection,
    script: &Script,
    at_us: u64,
    rule: &Rule,
    cost: u64,
) -> Vec<Value> {
    let mut command = redis::cmd("EVALSHA");
    command.arg(&script.sha).arg(1).arg(format!("other:{{alice}}:{}", rule.name()));
    command.arg(at_us).arg(4711).arg(cost).arg(form(rule.algorithm(), rule.limits().len()));
    for limit in rule.limits() {
        command.arg(limit.units()).arg(limit.window_us());
    }
    command.query(connection).unwrap()
}

/// Allowed, the longest wait, and the use of the first limit.
fn numbers(reply: &[Value]) -> (bool, i64, i64) {
    let whole = |value: &Value| match value {
        Value::Int(number) => *number,
        other => panic!("{other:?} is no number"),
    };
    let retry_us = reply[1..].chunks(4).map(|of_limit| whole(&of_limit[1])).max().unwrap();
    (whole(&reply[0]) == 1, retry_us, whole(&reply[1]))
}

/// Per algorithm and shape of a rule.
const STEPS: u32 = 100;

#[test]
fn a_list_has_the_numbers_of_the_store() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for script in [&*scripts::CHECK, &*scripts::PEEK] {
        command(&mut connection, &["SCRIPT", "LOAD", script.text]);
    }
    let shapes: [&[&str]; 2] = [&["9/1s"], &["9/1s", "30/7s"]];
    run(async {
        let store = store(&server.url()).await;
        for (number, algorithm) in every_algorithm().into_iter().enumerate() {
            for (shape, rates) in shapes.into_iter().enumerate() {
                let rule = rule(&format!("r{number}-{shape}"), rates, algorithm);
                let (mut rng, mut at_us, mut denied) = (Rng::new(7), BOUNDARY_US, 0);
                for step in 0..STEPS {
                    at_us += rng.below(120_000);
                    let cost = rng.between(1, 4);
                    let case = format!("{algorithm} {rates:?}, step {step}");
                    let peeked = call_script(&mut connection, &scripts::PEEK, at_us, &rule, cost);
                    let listed = call_script(&mut connection, &scripts::CHECK, at_us, &rule, cost);
                    let decision = check(&store, Call::at_us(at_us), &rule, cost).await;
                    let (allowed, retry_us, _) = numbers(&listed);
                    assert_eq!((allowed, retry_us), (numbers(&peeked).0, numbers(&peeked).1), "{case}");
                    assert_eq!(allowed, decision.allowed(), "{case}");
                    let wait_us = decision.retry_after().map(|wait| wait.as_micros());
                    assert_eq!(u128::try_from(retry_us).ok(), wait_us, "{case}");
                    let usage = &store.inspect(Call::at_us(at_us), &rule, key("alice")).await.unwrap()[0];
                    assert_eq!(u64::try_from(numbers(&listed).2).unwrap(), usage.used, "{case}");
                    denied += u32::from(!allowed);
                }
                assert!(denied > STEPS / 10, "{algorithm} {rates:?}: {denied} were denied");
            }
        }
    });
}

#[test]
fn an_unknown_form_is_an_error_and_charges_nothing() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    for form in ["", "sliding", "sliding-log,x", "sliding-log,0,,0,1,2", "sliding-buckets"] {
        let reply: redis::RedisResult<Value> = redis::cmd("EVAL")
            .arg(scripts::CHECK.text)
            .arg(&[b"2".as_slice(), b"one", b"two", b"", b"4711"])
            .arg(&["1", "sliding-log", "5", "1000000", "1", form, "5", "1000000"])
            .query(&mut connection);
        let error = reply.expect_err(form).to_string();
        assert!(error.contains("ARGV[8], the form of a charge, is wrong; "), "{form}: {error}");
        assert_eq!(redis::cmd("DBSIZE").query::<u64>(&mut connection).unwrap(), 0, "{form}");
    }
}
