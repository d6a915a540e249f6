//! Long logs: they answer like those in memory, field by field, after every verb.

use crate::common::RedisServer;
use slidegate::store::{Call, MemoryStore, Store, Update};
use slidegate::testing::{ExpiringStore, Rng, search_covers_all, search_size};
use slidegate::{Admission, Algorithm, Charge, Decision, Key, Receipt, Rule, Verdict};
use slidegate_redis::LogLayout;

fn rule(rates: &[&str]) -> Rule {
    let builder =
        rates.iter().fold(Rule::builder("api"), |builder, rate| builder.limit(rate.parse().unwrap()));
    builder.algorithm(Algorithm::SlidingLog).build().unwrap()
}

/// The parts of a decision that two stores agree on: all but the receipt's id.
fn comparable<'d>(decision: &'d Decision<'_>) -> (Vec<Verdict<'d>>, bool) {
    (decision.verdicts().collect(), decision.is_charged())
}

/// Requests per case.
const STEPS: u64 = 1_500;

/// Half of the requests cost one unit. Time passes in steps of at most `step_us`, with rare jumps.
async fn assert_equal(
    server: &RedisServer,
    name: &str,
    rates: &[&str],
    step_us: u64,
    cost_max: u64,
    begins_us: u64,
) {
    let (real, memory) =
        (crate::common::prefixed(&server.url(), name, LogLayout::Packed).await, MemoryStore::new());
    let (rule, key) = (rule(rates), Key::new("alice").unwrap());
    let mut rng = Rng::new(step_us);
    let (mut now_us, mut longest, mut denied) = (begins_us, 0, 0);
    let mut receipts: Vec<(Receipt, Receipt)> = Vec::new();
    for step in 0..search_size(STEPS) {
        now_us += rng.below(step_us);
        if rng.one_in(500) {
            now_us += rule.limits()[0].window_us() / 2;
        }
        let cost = if rng.one_in(2) { 1 } else { rng.between(1, cost_max) };
        let admission = Admission::new(&[Charge::new(&rule, key, cost)]).unwrap();
        let story = format!("{name}, step {step} at {now_us}, cost {cost}");
        match rng.below(40) {
            0 if !receipts.is_empty() => {
                let index = usize::try_from(rng.below(receipts.len() as u64)).unwrap();
                let (ours, theirs) = receipts.swap_remove(index);
                let given = real.update(Call::at_us(now_us), Update::Refund(&ours)).await.unwrap();
                assert_eq!(given, memory.refund(now_us, &theirs).unwrap(), "{story}: refund");
            }
            1 if !receipts.is_empty() => {
                let (ours, theirs) = receipts.pop().unwrap();
                let actual = rng.below(2 * cost_max);
                let settled = real.update(Call::at_us(now_us), Update::Settle(&ours, actual)).await;
                assert_eq!(
                    settled.ok(),
                    memory.settle(now_us, &theirs, actual).ok(),
                    "{story}: settle {actual}"
                );
            }
            2 if rng.one_in(4) => {
                let credited = real
                    .update(Call::at_us(now_us), Update::Credit(Charge::new(&rule, key, cost)))
                    .await
                    .unwrap();
                assert_eq!(
                    credited,
                    memory.credit(now_us, &Charge::new(&rule, key, cost)),
                    "{story}: credit"
                );
            }
            3 => {
                let peeked = real.peek(Call::at_us(now_us), &admission).await.unwrap();
                assert_eq!(peeked, memory.peek(now_us, &admission), "{story}: peek");
            }
            _ => {
                let before = if step % 16 == 0 { real.snapshot(&rule, key).await } else { None };
                let ours = real.check(Call::at_us(now_us), &admission).await.unwrap();
                let theirs = memory.check(now_us, &admission).unwrap();
                assert_eq!(comparable(&ours), comparable(&theirs), "{story}: check");
                if !ours.allowed() {
                    denied += 1;
                    assert!(
                        step % 16 != 0 || real.snapshot(&rule, key).await == before,
                        "{story}: a denial wrote"
                    );
                }
                receipts.extend(ours.receipt().zip(theirs.receipt()));
            }
        }
        let usages = real.inspect(Call::at_us(now_us), &rule, key).await.unwrap();
        assert_eq!(usages, memory.inspect(now_us, &rule, key), "{story}: inspect");
        if step % 50 == 0 {
            let mut connection = server.async_connection().await;
            let state = format!("{name}:{{alice}}:api");
            let bytes: usize = redis::cmd("STRLEN").arg(state).query_async(&mut connection).await.unwrap();
            longest = longest.max(bytes);
        }
    }
    let long_and_full = longest > 3_000 && denied > 20;
    assert!(
        long_and_full || !search_covers_all(),
        "{name}: {denied} were denied, and the longest value had {longest} bytes"
    );
}

#[tokio::test]
async fn long_logs_answer_like_those_in_memory() {
    const BEGINS_US: u64 = 1_745_000_145_000_000;
    let server = RedisServer::start();
    assert_equal(&server, "ones", &["400/1s"], 3_000, 1, BEGINS_US).await;
    assert_equal(&server, "costs", &["2000/1s"], 3_000, 20, BEGINS_US).await;
    assert_equal(&server, "wider", &["100000/1s"], 3_000, 900, BEGINS_US).await;
    assert_equal(&server, "several", &["400/1s", "2000/8s", "60/50ms"], 2_000, 4, BEGINS_US).await;
    assert_equal(&server, "late", &["2000/1s"], 3_000, 20, 9_007_199_254_000_000).await;
    assert_equal(&server, "later", &["400/1s", "2000/8s"], 3_000, 3, 100_000_000_000_000_000).await;
}
