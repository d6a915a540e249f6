//! Made-up keys and made-up rules against a small memory budget.

use serde_json::{Value, json};

use crate::attack::{Attack, Plan};
use crate::client::Client;
use crate::observe::{MIB, check, check_batch, grouped, peak_bytes, stop};
use crate::program::file_of;
use crate::server_process::ServerProcess;

pub(crate) const ATTACK: Attack = Attack {
    name: "memory budget",
    holds: "inline rules left room for configured ones; when all was spent, new keys got 503 or the policy's \
            answer, known keys were still counted, and resident memory was within twice the budget and 32 MiB",
    carry_out: attack,
};

const BATCH: u64 = 64;
const MARGIN_BYTES: u64 = 32 * MIB;
/// Refusals after which a budget counts as spent.
const REFUSED_MIN: u64 = 1_000;

fn attack(plan: &Plan) -> String {
    let budget_mib = plan.size(4, 16);
    let rules = "strict: { limit: 5/1d }, open: { limit: 5/1d, on_store_error: allow }";
    let config = format!("rules: {{ {rules} }}\ninline_rules: true\nmemory_budget: {budget_mib}MiB\n");
    let server = ServerProcess::start(&["--config", &file_of("rules.yaml", config)]);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(check(&mut client, "strict", "alice").status, 200);
    }
    let before = server.resident_bytes();
    let budget = budget_mib * MIB;

    // Keys, limits and windows of the caller's choice: the longest windows are refused, and more rules than the bound.
    let (inline_keys, _) = spend(&mut client, budget, |number| {
        let hours = number % 2_000 + 1;
        json!({ "rule": { "limit": format!("5/{hours}h") }, "key": format!("inline:{number}") })
    });
    assert_eq!(check(&mut client, "strict", "bob").status, 200, "configured rules have room");

    let (keys, refused) =
        spend(&mut client, budget, |number| json!({ "rule": "strict", "key": format!("user:{number}") }));
    assert!(refused >= REFUSED_MIN);
    // The last bytes may still have room for a few keys of another rule.
    let passed_uncounted = |number| {
        let passed = check(&mut client, "open", &format!("user:{number}"));
        assert_eq!(passed.status, 200, "{passed:?}");
        passed.json()["degraded"] == json!(true)
    };
    assert!((0..REFUSED_MIN).any(passed_uncounted), "keys of `open` find room without end");
    let statuses: Vec<u16> = (0..3).map(|_| check(&mut client, "strict", "alice").status).collect();
    assert_eq!(statuses, [200, 200, 429], "a known key is counted to its limit");

    let grown = peak_bytes(&server).saturating_sub(before);
    assert!(grown < 2 * budget + MARGIN_BYTES, "{} MiB at a budget of {budget_mib} MiB", grown / MIB);
    stop(server);
    let keys = grouped(inline_keys + keys);
    format!(
        "{keys} made-up keys, half of them with inline rules, at {budget_mib} MiB; {} MiB more",
        grown / MIB
    )
}

/// Checks one new charge after the other until a thousand found no room, at most as many as the budget has room for.
/// Returns how many were tried and how many found no room.
fn spend(client: &mut Client, budget: u64, charge: impl Fn(u64) -> Value) -> (u64, u64) {
    let (mut tried, mut refused) = (0, 0);
    while refused < REFUSED_MIN && tried < budget / 16 {
        let charges: Vec<Value> = (tried..tried + BATCH).map(&charge).collect();
        for answer in check_batch(client, &charges) {
            // Only problems have a status.
            let status = answer["status"].as_u64().unwrap_or(200);
            assert!(matches!(status, 200 | 400 | 503), "{answer}");
            refused += u64::from(status == 503);
        }
        tried += BATCH;
    }
    (tried, refused)
}
