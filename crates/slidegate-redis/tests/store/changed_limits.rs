//! Rules of one name with different limits and windows, without a live change between the calls.

use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, MemoryStore, Store};

/// Until the next charge a backlog drains as the limit of the last one says. Another window begins with the use so far.
#[test]
fn a_state_goes_on_under_another_limit_as_in_memory() {
    let server = RedisServer::start();
    run(async {
        for (layout, store) in stores(&server.url()).await {
            let memory = MemoryStore::new();
            for (number, algorithm) in algorithms_of(layout).into_iter().enumerate() {
                goes_on_as_in_memory(&store, &memory, &format!("{layout:?}-{number}"), algorithm).await;
            }
        }
    });
}

async fn goes_on_as_in_memory(store: &impl Store, memory: &MemoryStore, name: &str, algorithm: Algorithm) {
    let rates = ["100/10s", "60/10s", "100/10s", "400/10s", "400/4s", "400/20s"];
    for (step, rate) in (0..).zip(rates) {
        let (rule, now) = (rule(name, &[rate], algorithm), Call::at_us(BOUNDARY_US + step * SECOND_US));
        let [shared, local] = [
            check(store, now, &rule, 30).await.verdicts().collect::<Vec<_>>(),
            check(memory, now, &rule, 30).await.verdicts().collect::<Vec<_>>(),
        ]
        .map(|verdicts| format!("{verdicts:?}"));
        assert_eq!(shared, local, "{name}, {algorithm}, step {step}");
    }
}
