//! Two servers share a Redis: a reset by one is seen by the other within the hold of its deny cache.

use std::time::Duration;

use serde_json::json;

use crate::faults::Target;
use crate::matrix::gauge;
use crate::observe::{check, timed, until};
use crate::options::Plan;
use crate::program::file_of;
use crate::server_process::ServerProcess;
use crate::trial::Text;

pub(crate) const TRIAL: Text = trial;

/// The default hold of the deny cache.
const HOLD: Duration = Duration::from_secs(1);
/// What a quiet machine needs beyond it.
const SLACK: Duration = Duration::from_millis(100);

fn trial(plan: &Plan) -> String {
    let target = Target::start();
    // Long enough for a busy machine.
    let config = file_of("rules.yaml", "rules: { api: { limit: 1/1d } }\ndeadline: 5s\n");
    let start = || ServerProcess::start(&["--config", &config, "--store", &target.proxy.url()]);
    let (here, there) = (start(), start());
    let mut client = here.connect();
    let mut longest = Duration::ZERO;
    let rounds = plan.size(2, 10);
    for round in 0..rounds {
        let key = format!("alice-{round}");
        assert_eq!(check(&mut client, "api", &key).status, 200);
        assert_eq!(check(&mut client, "api", &key).status, 429);
        let (_, calls) = target.proxy.counts();
        let hits = gauge(&here, "slidegate_deny_cache_hits_total");
        for _ in 0..50 {
            assert_eq!(check(&mut client, "api", &key).status, 429);
        }
        // A busy machine may take longer than the hold for them.
        let asked = target.proxy.counts().1 - calls;
        let hit = gauge(&here, "slidegate_deny_cache_hits_total") - hits;
        assert_eq!(asked + hit, 50, "each is answered by the store or by the cache");
        assert!(asked < 25, "{asked} of 50 asked the store");
        let reset = json!({ "rule": "api", "key": key }).to_string();
        assert_eq!(there.ask("POST", "/v1/reset", &reset).status, 200);
        let ((), took) = timed(|| {
            until("the reset is seen", || check(&mut client, "api", &key).status == 200);
        });
        longest = longest.max(took);
        // By the same server it is seen at once.
        assert_eq!(check(&mut client, "api", &key).status, 429);
        assert_eq!(client.ask("POST", "/v1/reset", &reset).status, 200);
        assert_eq!(check(&mut client, "api", &key).status, 200);
    }
    assert!(!plan.full || longest <= HOLD + SLACK, "{longest:?}");
    format!("{rounds} resets by another server were seen within {} ms", longest.as_millis())
}
