//! A fleet: callers in several processes share one limit, and get exactly that.

use std::env;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::common::*;
use slidegate::Rule;
use slidegate::store::Call;

const MEMBERS: usize = 4;
const CALLERS: usize = 250;
const LIMIT: u64 = 50;
/// The environment variable with the server's URL.
const URL: &str = "SLIDEGATE_FLEET_URL";
/// Seconds to wait for a member.
const TIMEOUT: &str = "60";

fn rules() -> Vec<Arc<Rule>> {
    let numbered = every_algorithm().into_iter().enumerate();
    // Nothing expires while the test runs.
    let rate = format!("{LIMIT}/400d");
    numbered
        .map(|(number, algorithm)| Arc::new(rule(&format!("rule-{number}"), &[&rate], algorithm)))
        .collect()
}

/// One process of the fleet: makes its calls, and stores its admissions in Redis.
fn run_member(url: &str) {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_connection().unwrap();
    let mut command = |words: &[&str]| server::command(&mut connection, words);
    run(async {
        let store = Arc::new(store(url).await);
        command(&["RPUSH", "fleet:ready", "1"]);
        assert_ne!(command(&["BLPOP", "fleet:go", TIMEOUT]), redis::Value::Nil, "no signal to start");
        for rule in rules() {
            let tally = tally::all_at_once(&store, &rule, CALLERS).await;
            tally.assert_answered();
            command(&["INCRBY", &format!("fleet:{}", rule.name()), &tally.admitted.to_string()]);
        }
    });
}

/// Without the variable it runs a fleet of one.
#[test]
fn a_member_of_the_fleet() {
    if let Ok(url) = env::var(URL) {
        return run_member(&url);
    }
    let server = RedisServer::start();
    server.command(&["RPUSH", "fleet:go", "1"]);
    run_member(&server.url());
    assert_admitted(&server);
}

fn member(url: &str) -> Child {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "fleet::a_member_of_the_fleet"]).env(URL, url).stdin(Stdio::null());
    program.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn row_16_a_thousand_callers_of_four_processes_get_exactly_the_limit() {
    let server = RedisServer::start();
    let members: Vec<Child> = (0..MEMBERS).map(|_| member(&server.url())).collect();
    let mut watch = ServerWatch::new(&server);
    for _ in 0..MEMBERS {
        assert_ne!(
            watch.command(&["BLPOP", "fleet:ready", TIMEOUT]),
            redis::Value::Nil,
            "a member is missing"
        );
    }
    watch.command(&["RPUSH", "fleet:go", "1", "1", "1", "1"]);
    for mut member in members {
        assert!(member.wait().unwrap().success(), "a member failed; see its output above");
    }
    assert_admitted(&server);
}

fn assert_admitted(server: &RedisServer) {
    let mut watch = ServerWatch::new(server);
    run(async {
        let store = store(&server.url()).await;
        for rule in rules() {
            let admitted = watch.text(&["GET", &format!("fleet:{}", rule.name())]);
            let counted = used(&store, Call::now(), &rule).await;
            assert_eq!((admitted, counted), (LIMIT.to_string(), LIMIT), "{}", rule.algorithm());
        }
    });
}
