//! Directed attacks: the worst-case traffic of each algorithm.
//!
//! Random traffic rarely finds a worst case. These attacks place one burst where an algorithm drops
//! it too early or counts it too long, and then take all remaining units.

use super::auditor::{Auditor, Findings};
use super::rng::Rng;
use crate::algorithm::State;
use crate::rule::{Algorithm, Edge, Limit};

/// The instant around which attacks are placed: some multiple of every window, far from 1970.
const ORIGIN_WINDOWS: u64 = 1_000;

/// One state under attack, watched by an auditor.
struct Target {
    limit: Limit,
    state: State,
    auditor: Auditor,
}

impl Target {
    fn new(limit: &Limit) -> Self {
        let auditor = Auditor::new(limit.units(), limit.window_us());
        Self { limit: *limit, state: State::new(*limit), auditor }
    }

    fn ask(&mut self, now_us: u64, cost: u64) -> bool {
        let allowed = self.state.decide(&self.limit, now_us, cost).allowed();
        if allowed {
            self.state.charge(&self.limit, now_us, cost);
        }
        self.auditor.saw(now_us, cost, allowed);
        allowed
    }

    /// Takes all that is left, which must pass; one unit more must not.
    fn take_all(&mut self, now_us: u64) {
        let remaining = self.limit.units().saturating_sub(self.state.usage(&self.limit, now_us).used);
        if remaining > 0 {
            assert!(self.ask(now_us, remaining), "{remaining} remain at {now_us} but do not pass");
        }
        assert!(!self.ask(now_us, 1), "nothing remains at {now_us} but a unit passes");
    }
}

/// Instants for a burst: around the boundaries of windows and buckets, and random ones.
fn instants(limit: &Limit) -> Vec<u64> {
    let (window_us, bucket_us) = (limit.window_us(), limit.bucket_us());
    let origin = ORIGIN_WINDOWS * window_us;
    let buckets = window_us / bucket_us;
    let mut rng = Rng::new(origin ^ limit.units());
    let mut instants = vec![origin + rng.below(window_us), origin + rng.below(window_us)];
    for boundary in
        [origin / bucket_us * bucket_us, origin, origin + bucket_us, origin + buckets / 2 * bucket_us]
    {
        instants.extend([boundary - 2, boundary - 1, boundary, boundary + 1]);
    }
    instants
}

/// *Straddle*: takes the whole limit at one instant, then all remaining units within the same
/// window, at its last instant or in `steps` along the way.
///
/// This attains the bound of every algorithm that has one above the limit.
#[must_use]
pub fn straddle(limit: &Limit, steps: u64) -> Findings {
    worst(limit, |target, burst_us| {
        target.take_all(burst_us);
        let last_us = burst_us + limit.window_us() - 1;
        for step in 1..=steps {
            let span = u128::from(last_us - burst_us) * u128::from(step) / u128::from(steps);
            target.take_all(burst_us + u64::try_from(span).expect("a part of a window"));
        }
    })
}

/// *Echo*: takes the whole limit, waits until the true window is empty, and asks repeatedly until
/// the limiter no longer counts the burst.
///
/// This finds the earliest refusal of algorithms that count a burst for too long.
#[must_use]
pub fn echo(limit: &Limit) -> Findings {
    worst(limit, |target, burst_us| {
        target.take_all(burst_us);
        let mut now_us = burst_us + limit.window_us();
        for _ in 0..8 {
            let ruling = target.state.decide(limit, now_us, limit.units());
            target.ask(now_us, 1);
            now_us += ruling.retry_after_us.div_ceil(2).max(1);
        }
    })
}

/// *Drizzle*: fills the limit one unit at a time, with random gaps, and keeps asking
/// while the units expire.
///
/// This makes a log merge, and finds what merging costs.
#[must_use]
pub fn drizzle(limit: &Limit, units: u64) -> Findings {
    worst(limit, |target, start_us| {
        let mut rng = Rng::new(start_us);
        let gap_us = (limit.window_us() / units.max(1)).max(1);
        let mut now_us = start_us;
        for _ in 0..3 * units {
            now_us += if rng.one_in(4) { rng.between(0, 3 * gap_us) } else { rng.between(0, gap_us) };
            let cost = if limit.units() > units { limit.units() / units } else { 1 };
            target.ask(now_us, cost);
        }
    })
}

/// The worst findings of all attacks.
#[must_use]
pub fn all(limit: &Limit) -> Findings {
    let attacks = [straddle(limit, 1), straddle(limit, 10), echo(limit), drizzle(limit, 300)];
    attacks.into_iter().fold(Findings::default(), join)
}

/// The most that can be admitted within one window of `limit`, on a clock of whole microseconds:
/// [`Algorithm::admitted_max`], unless the window is too short for it.
#[must_use]
pub fn attainable_max(limit: &Limit) -> u64 {
    let fading = |width_us: u64| {
        let released =
            u128::from(limit.units()) * u128::from(width_us.saturating_sub(2)) / u128::from(width_us);
        limit.units() + u64::try_from(released).expect("less than the limit")
    };
    match limit.algorithm() {
        Algorithm::SlidingCounter => fading(limit.window_us()),
        Algorithm::SlidingBuckets(_, Edge::Interpolated) => fading(limit.bucket_us()),
        Algorithm::Gcra => {
            let drained =
                u128::from(limit.units()) * u128::from(limit.window_us() - 1) / u128::from(limit.window_us());
            limit.units() + u64::try_from(drained).expect("less than the limit")
        }
        // Buckets of one microsecond are an exact log.
        Algorithm::SlidingBuckets(_, Edge::Dropped) if limit.bucket_us() == 1 => limit.units(),
        algorithm => algorithm.admitted_max(limit.units()),
    }
}

fn worst(limit: &Limit, attack: impl Fn(&mut Target, u64)) -> Findings {
    let found = instants(limit).into_iter().map(|instant| {
        let mut target = Target::new(limit);
        attack(&mut target, instant);
        target.auditor.findings()
    });
    found.fold(Findings::default(), join)
}

fn join(first: Findings, second: Findings) -> Findings {
    Findings {
        decisions: first.decisions + second.decisions,
        admitted: first.admitted + second.admitted,
        most_in_window: first.most_in_window.max(second.most_in_window),
        early_refusals: first.early_refusals + second.early_refusals,
        early_units_max: first.early_units_max.max(second.early_units_max),
    }
}
