//! Every example runs and prints what it promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::process::Command;

/// What an example prints. `cargo test` without `--test` builds the examples first.
fn output(example: &str) -> String {
    let program = env::current_exe().unwrap().with_file_name("../examples").join(example);
    let run = Command::new(&program).output();
    let run = run.unwrap_or_else(|error| panic!("{}: {error}; `cargo build --examples`", program.display()));
    assert!(run.status.success(), "{example}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn per_user_limits_come_from_the_table() {
    assert_eq!(
        output("per_user_limits"),
        "carol: 2 of 10 requests admitted\nalice: 5 of 10 requests admitted\nbob: 1 of 10 requests admitted\n\
         batch-7: 10 of 10 requests admitted\nmallory: blocked\n"
    );
}

#[test]
fn several_limits_pass_together_or_not_at_all() {
    assert_eq!(
        output("several_limits"),
        "first: allowed true, search has least left\nsecond: allowed false, search binds, retry in 1s\n\
         \x20 quota: Some(200) used of Some(9500)\n  search: Some(200) used of Some(300)\nrefund: 400 units\n\
         third: allowed true\n"
    );
}

#[test]
fn tokens_are_settled_in_a_spawned_task() {
    assert_eq!(
        output("settle_tokens"),
        "one: admitted for up to 1000 tokens\ntwo: admitted for up to 1000 tokens\n\
         three: denied, 2000 tokens are reserved\nsettled for 340 tokens, 660 given back\n\
         settled for 340 tokens, 660 given back\n1320 of 2000 tokens left\n"
    );
}

#[test]
fn waiters_are_admitted_in_the_order_of_their_arrival() {
    let admitted = [1, 2, 3, 4, 5, 6].map(|number| format!("request {number} admitted\n"));
    assert_eq!(output("waiting_in_line"), admitted.concat() + "an hour is too long: allowed false\n");
}
