//! The boundary proof in real time, on a real store.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};
use slidegate::{Admission, Algorithm, Rate, Rule};
use tokio::time::{Instant, sleep_until};

use crate::stores::Opened;

/// How far from the boundary the bursts come.
const ASIDE: Duration = Duration::from_secs(1);
/// A boundary must be so far away that the first burst is through in time.
const AHEAD: Duration = Duration::from_millis(1_200);

/// How many of two bursts of `burst` requests, one before a boundary of windows and one after it, each algorithm
/// accepts. The boundary is that of the store's clock, whatever ours shows.
pub(super) fn accepted(
    opened: &Opened,
    rate: Rate,
    burst: u64,
    algorithms: &[Algorithm],
    err: &mut impl Write,
) -> Result<Vec<u64>> {
    // Nobody else's counts, not even those of another demonstration.
    let visitor = format!("demo-{:016x}", RandomState::new().hash_one("visitor"));
    let rules: Vec<Rule> = algorithms.iter().map(|&algorithm| Rule::inline(rate, algorithm)).collect();
    let mut until = until_boundary(opened, rate, &visitor)?;
    if until < AHEAD {
        until += rate.window();
    }
    let now = Instant::now();
    writeln!(err, "waiting {} s for a window boundary of the store's clock", until.as_secs()).ok();
    let mut accepted = vec![0; rules.len()];
    for at in [now + until.saturating_sub(ASIDE), now + until + ASIDE] {
        opened.wait(async { sleep_until(at).await });
        for (rule, accepted) in rules.iter().zip(&mut accepted) {
            let charge = rule.charge(&visitor, 1)?;
            let requests = (0..burst).map(|_| Admission::new(&[charge])).collect::<Result<Vec<_>, _>>()?;
            for decision in opened.wait(opened.limiter.check_batch_async(&requests)) {
                *accepted += u64::from(decision?.allowed());
            }
        }
    }
    Ok(accepted)
}

/// A fixed window that was just charged says how long it lasts.
fn until_boundary(opened: &Opened, rate: Rate, visitor: &str) -> Result<Duration> {
    let rule = Rule::inline(rate, Algorithm::FixedWindow);
    let key = format!("{visitor}-clock");
    let decision = opened.wait(opened.limiter.check_async(&rule, &key)).context("cannot ask for the time")?;
    decision.reset_after().context("the store does not say how long its window lasts")
}
