//! The long run: seeded random requests of every size, with refunds and credits, on every core.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use slidegate::Algorithm;
use slidegate::testing::attack;
use slidegate::testing::traffic::Traffic;

use crate::subjects::limit;

/// The limits of a run, in turn, and about how many requests fill each.
const MIX: [(&str, u64); 10] = [
    ("1/1s", 1),
    ("2/7s", 2),
    ("3/1s", 3),
    ("50/10s", 50),
    ("100/60s", 60),
    ("1000/60s", 700),
    ("9500/1d", 95),
    ("2147483648/1h", 30),
    ("1000000000000/400d", 200),
    ("1000/1ms", 500),
];
const CHUNK_DECISIONS: u64 = 100_000;

/// The findings of a long run.
#[derive(Default)]
pub(crate) struct LongRunFindings {
    pub(crate) decisions: u64,
    /// Most units in any window in millionths of the limit, where nothing was given back.
    pub(crate) most_ppm: u64,
    /// The earliest refusal: the most units that were missing in the window, in millionths of the limit.
    pub(crate) early_ppm: u64,
    /// Units above the documented bound.
    pub(crate) over_bound: u64,
    pub(crate) waits_wrong: Vec<String>,
}

/// Makes about `decisions` decisions.
pub(crate) fn run(algorithm: Algorithm, decisions: u64) -> LongRunFindings {
    let chunks = decisions.div_ceil(CHUNK_DECISIONS);
    let next_chunk = AtomicU64::new(0);
    let found = Mutex::new(LongRunFindings::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let chunk = next_chunk.fetch_add(1, Ordering::Relaxed);
                    if chunk >= chunks {
                        return;
                    }
                    let part = run_chunk(algorithm, chunk);
                    found.lock().expect("no worker panics while it holds the lock").add(part);
                }
            });
        }
    });
    found.into_inner().expect("no worker panics while it holds the lock")
}

fn run_chunk(algorithm: Algorithm, chunk: u64) -> LongRunFindings {
    let (rate, requests_per_limit) = MIX[usize::try_from(chunk).expect("an index") % MIX.len()];
    let limit = limit(rate, algorithm);
    // The bounds of approximate algorithms assume that no charge is given back; only the others also run with refunds.
    let never_over = algorithm.admitted_max(limit.units()) == limit.units();
    let give_back = never_over && chunk.is_multiple_of(3);
    let traffic =
        Traffic { seed: chunk, decisions: CHUNK_DECISIONS, requests_per_limit, give_back, probe_every: 16 };
    match traffic.run(&limit) {
        Ok(findings) => LongRunFindings {
            decisions: findings.decisions,
            most_ppm: ppm(findings.most_in_window, limit.units()),
            early_ppm: ppm(findings.early_units_max, limit.units()),
            over_bound: findings.most_in_window.saturating_sub(attack::attainable_max(&limit)),
            waits_wrong: Vec::new(),
        },
        Err(wrong) => LongRunFindings {
            waits_wrong: vec![format!("{algorithm} {rate}, seed {chunk}: {wrong}")],
            ..LongRunFindings::default()
        },
    }
}

impl LongRunFindings {
    fn add(&mut self, part: Self) {
        self.decisions += part.decisions;
        self.most_ppm = self.most_ppm.max(part.most_ppm);
        self.early_ppm = self.early_ppm.max(part.early_ppm);
        self.over_bound = self.over_bound.max(part.over_bound);
        self.waits_wrong.extend(part.waits_wrong);
    }
}

/// A ratio in millionths.
fn ppm(part: u64, whole: u64) -> u64 {
    let ratio = u128::from(part) * 1_000_000 / u128::from(whole);
    u64::try_from(ratio).unwrap_or(u64::MAX)
}
