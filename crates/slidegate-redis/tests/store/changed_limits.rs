//! Rules of one name with different limits and windows, without a live change between the calls.

use crate::common::*;
use slidegate::store::{Call, MemoryStore};

/// Until the next charge a backlog drains as the limit of the last one says. Another window begins with the use so far.
#[test]
fn a_state_goes_on_under_another_limit_as_in_memory() {
    let server = RedisServer::start();
    run(async {
        let (store, memory) = (store(&server.url()).await, MemoryStore::new());
        for (number, algorithm) in every_algorithm().into_iter().enumerate() {
            let name = format!("rule-{number}");
            for (step, rate) in
                ["100/10s", "60/10s", "100/10s", "400/10s", "400/4s", "400/20s"].into_iter().enumerate()
            {
                let (rule, now) = (
                    rule(&name, &[rate], algorithm),
                    Call::at_us(BOUNDARY_US + u64::try_from(step).unwrap() * SECOND_US),
                );
                let [shared, local] = [
                    check(&store, now, &rule, 30).await.verdicts().collect::<Vec<_>>(),
                    check(&memory, now, &rule, 30).await.verdicts().collect::<Vec<_>>(),
                ]
                .map(|verdicts| format!("{verdicts:?}"));
                assert_eq!(shared, local, "{algorithm}, step {step}");
            }
        }
    });
}
