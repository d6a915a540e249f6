//! Four shapes of seeded traffic: the arrival times of requests of cost 1.

use slidegate::testing::Rng;

/// Where simulated time begins: a whole minute.
const START_US: u64 = 1_745_000_100_000_000;

/// A shape of traffic around a limit of `limit` per `window_us`, over `windows` windows.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// The description above the table.
    pub(crate) description: &'static str,
    arrivals: fn(&mut Rng, limit: u64, window_us: u64, windows: u64) -> Vec<u64>,
}

impl Shape {
    /// The arrival times, in order.
    pub(crate) fn arrivals(&self, seed: u64, limit: u64, window_us: u64, windows: u64) -> Vec<u64> {
        let mut instants = (self.arrivals)(&mut Rng::new(seed), limit, window_us, windows);
        instants.sort_unstable();
        for instant in &mut instants {
            *instant += START_US;
        }
        instants
    }
}

pub(crate) const SHAPES: [Shape; 4] = [
    Shape {
        name: "steady",
        description: "one request every W/(1.2 L), jittered by a tenth of that gap",
        arrivals: |rng, limit, window_us, windows| {
            let gap_us = window_us * 10 / (limit * 12);
            (0..windows * limit * 12 / 10).map(|index| index * gap_us + rng.below(gap_us / 10)).collect()
        },
    },
    Shape {
        name: "Poisson",
        description: "independent requests, 1.2 L per window on average",
        arrivals: |rng, limit, window_us, windows| {
            uniform(rng, windows * limit * 12 / 10, windows * window_us)
        },
    },
    Shape {
        name: "bursty",
        description: "independent bursts of L/5 requests on average within W/1200, 1.2 L per window on average",
        arrivals: |rng, limit, window_us, windows| {
            let bursts = windows * 6;
            let starts = uniform(rng, bursts, windows * window_us);
            let mut instants = Vec::new();
            for start_us in starts {
                for _ in 0..rng.between(1, limit * 2 / 5) {
                    instants.push(start_us + rng.below(window_us / 1_200));
                }
            }
            instants
        },
    },
    Shape {
        name: "cron",
        description: "a job of L/2 requests in the first sixtieth of every window, in every fifth window another job of L, and L/5 requests spread over each window",
        arrivals: |rng, limit, window_us, windows| {
            let mut instants = uniform(rng, windows * limit / 5, windows * window_us);
            for window in 0..windows {
                let size = limit / 2 + if window % 5 == 0 { limit } else { 0 };
                instants.extend((0..size).map(|_| window * window_us + rng.below(window_us / 60)));
            }
            instants
        },
    },
];

/// A Poisson process of known size: given their number, its arrivals are uniform.
fn uniform(rng: &mut Rng, count: u64, span_us: u64) -> Vec<u64> {
    (0..count).map(|_| rng.below(span_us)).collect()
}
