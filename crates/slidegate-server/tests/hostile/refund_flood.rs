//! Refunds without end: each leaves a record until its receipt expires.

use serde_json::json;

use crate::attack::{Attack, Plan};
use crate::client::{Client, HttpAnswer};
use crate::observe::{check, grouped, stop};
use crate::program::file_of;
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "refund flood",
    holds: "one key did not use up the refunds of its rule, nor one rule those of others; a refund without room \
            got 503 and changed nothing; no refund was applied twice",
    carry_out: attack,
};

/// Refusals after which a share counts as spent.
const REFUSED_MIN: u64 = 20;
const KEYS: u64 = 50;

fn attack(plan: &Plan) -> String {
    let (budget, count_max) = (plan.size("1MiB", "16MiB"), plan.size(2_000, 40_000));
    let rules = "rules: { flooded: { limit: 1000000/1d }, other: { limit: 5/1d } }";
    let config = file_of("rules.yaml", format!("{rules}\nmemory_budget: {budget}\n"));
    let server = ServerProcess::start(&["--config", &config]);
    let mut client = server.connect();
    let mut tried = flood(&mut client, count_max, |_| "mallory".to_owned());
    // Another key of the same rule.
    assert_applied(&charge_and_refund(&mut client, "flooded", "alice"));
    tried += flood(&mut client, count_max, |number| format!("mallory-{}", number % KEYS));
    // All keys of the rule are blocked now, those of others are not.
    for number in 0..3 {
        assert_applied(&charge_and_refund(&mut client, "other", &format!("bob-{number}")));
    }
    let used =
        |client: &mut Client, path: &str| client.ask("GET", path, "").json()["limits"][0]["used"].clone();
    assert_eq!(used(&mut client, "/v1/keys/other/bob-0"), json!(0));
    let before = used(&mut client, "/v1/keys/flooded/mallory").as_u64().expect("a number");
    assert_eq!(charge_and_refund(&mut client, "flooded", "mallory").status, 503);
    assert_eq!(
        used(&mut client, "/v1/keys/flooded/mallory"),
        json!(before + 1),
        "a refused refund has no effect"
    );
    stop(server);
    format!("{} refunds at a budget of {budget}", grouped(tried))
}

/// Charges and refunds until refunds are refused. Returns how many there were.
fn flood(client: &mut Client, count_max: u64, key: impl Fn(u64) -> String) -> u64 {
    let mut refused = 0;
    for number in 0..count_max {
        let answer = charge_and_refund(client, "flooded", &key(number));
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
        refused += u64::from(answer.status == 503);
        if refused == REFUSED_MIN {
            return number + 1;
        }
    }
    panic!("no share was spent by {count_max} refunds")
}

fn charge_and_refund(client: &mut Client, rule: &str, key: &str) -> HttpAnswer {
    let charged = check(client, rule, key);
    assert_eq!(charged.status, 200, "{charged:?}");
    let refund = json!({ "receipt": charged.json()["receipt"] }).to_string();
    let refunded = client.ask("POST", "/v1/refund", &refund);
    if refunded.status == 200 {
        assert_applied(&refunded);
        let again = client.ask("POST", "/v1/refund", &refund);
        assert_eq!(again.json()["applied"], json!(false), "a receipt works once");
    }
    refunded
}

fn assert_applied(answer: &HttpAnswer) {
    assert_eq!((answer.status, &answer.json()["applied"]), (200, &json!(true)), "{answer:?}");
}
