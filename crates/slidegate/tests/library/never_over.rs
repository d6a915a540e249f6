//! The limit holds: random traffic and directed attacks, checked by an auditor that sees only
//! (time, cost, allowed).

use slidegate::Algorithm;
use slidegate::rule::{Buckets, Decimal, Edge, Entries, Limit};
use slidegate::testing::{attack, search_covers_all, search_size, traffic::Traffic};

fn limit(rate: &str, algorithm: Algorithm) -> Limit {
    Limit::new(rate.parse().unwrap(), Decimal::ZERO, algorithm)
}

fn buckets(count: u64, edge: Edge) -> Algorithm {
    Algorithm::SlidingBuckets(Buckets::new(count).unwrap(), edge)
}

fn compact(entries: u64) -> Algorithm {
    Algorithm::CompactLog(Entries::new(entries).unwrap())
}

const BUCKETS: [u64; 4] = [1, 7, 60, 4_096];

/// Two tests per algorithm, so that they run side by side.
macro_rules! test_each {
    ($($name:ident: $algorithms:expr;)+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn random_traffic_stays_within_the_documented_bound_and_waits_are_exact() {
                super::random_traffic_stays_within_the_documented_bound_and_waits_are_exact(&$algorithms);
            }

            #[test]
            fn attacks_attain_the_documented_bound_and_no_more() {
                super::attacks_attain_the_documented_bound_and_no_more(&$algorithms);
            }
        })+
    };
}

test_each! {
    sliding_log: [Algorithm::SlidingLog];
    compact_log: [4, 16, 128, 4_096].map(compact);
    sliding_buckets_full: BUCKETS.map(|count| buckets(count, Edge::Full));
    sliding_buckets_interpolated: BUCKETS.map(|count| buckets(count, Edge::Interpolated));
    sliding_buckets_dropped: BUCKETS.map(|count| buckets(count, Edge::Dropped));
    sliding_counter: [Algorithm::SlidingCounter];
    fixed_window: [Algorithm::FixedWindow];
    gcra: [Algorithm::Gcra];
}

const RATES: [&str; 15] = [
    "1/1ms",
    "1/60s",
    "2/1ms",
    "2/7s",
    "3/1s",
    "50/10s",
    "1000/1ms",
    "1000/60s",
    "100000/1h",
    "2147483648/1s",
    "2147483648/400d",
    "1000000000000/1ms",
    "1000000000000/1s",
    "1000000000000/400d",
    "7/400d",
];

fn random_traffic_stays_within_the_documented_bound_and_waits_are_exact(algorithms: &[Algorithm]) {
    for &algorithm in algorithms {
        for (index, rate) in RATES.into_iter().enumerate() {
            let limit = limit(rate, algorithm);
            // Enough decisions to fill the window several times.
            for (requests_per_limit, give_back, decisions) in
                [(3, false, 600), (40, true, 1_200), (700, false, 3_200)]
            {
                let traffic = Traffic {
                    seed: index as u64 * 1_000 + requests_per_limit,
                    decisions: search_size(decisions),
                    requests_per_limit,
                    give_back,
                    probe_every: 1,
                };
                let found = traffic
                    .run(&limit)
                    .unwrap_or_else(|wrong| panic!("{algorithm} {rate} {traffic:?}: {wrong}"));
                // The bound of an approximate algorithm holds for charges that are not given back: a refund may free
                // more room in the state than in the true window.
                let bound = attack::attainable_max(&limit);
                if !give_back || algorithm.admitted_max(10) == 10 {
                    assert!(found.most_in_window <= bound, "{algorithm} {rate} {traffic:?}: {found:?}");
                }
                let both = found.admitted > 0 && found.admitted < found.decisions;
                assert!(both || !search_covers_all(), "{algorithm} {rate}: {found:?}");
            }
        }
    }
}

fn attacks_attain_the_documented_bound_and_no_more(algorithms: &[Algorithm]) {
    for &algorithm in algorithms {
        for rate in RATES {
            let limit = limit(rate, algorithm);
            let found = attack::all(&limit);
            assert_eq!(found.most_in_window, attack::attainable_max(&limit), "{algorithm} {rate}: {found:?}");
        }
    }
}

#[test]
fn the_documented_bounds_are_attained_in_full_where_the_window_has_room() {
    for (algorithm, bound) in [
        (Algorithm::SlidingLog, 1_000),
        (compact(128), 1_000),
        (buckets(60, Edge::Full), 1_000),
        (buckets(60, Edge::Interpolated), 1_999),
        (buckets(60, Edge::Dropped), 2_000),
        (Algorithm::SlidingCounter, 1_999),
        (Algorithm::FixedWindow, 2_000),
        (Algorithm::Gcra, 1_999),
    ] {
        let limit = limit("1000/60s", algorithm);
        assert_eq!(attack::all(&limit).most_in_window, bound, "{algorithm}");
        assert_eq!(algorithm.admitted_max(1_000), bound, "{algorithm}");
    }
}

#[test]
fn early_refusals_are_bounded() {
    for rate in RATES {
        for algorithm in
            [Algorithm::SlidingLog, Algorithm::FixedWindow, Algorithm::Gcra, buckets(60, Edge::Dropped)]
        {
            let found = attack::all(&limit(rate, algorithm));
            assert_eq!(found.early_refusals, 0, "{algorithm} {rate}: {found:?}");
        }
        for entries in [4, 16, 128, 4_096] {
            let limit = limit(rate, compact(entries));
            let merged_max = (2 * limit.units()).div_ceil(entries - 2);
            let found = attack::all(&limit);
            assert!(found.early_units_max < merged_max.max(1), "K={entries} {rate}: {found:?}");
        }
    }
    // These are early by design: the auditor must detect it.
    for algorithm in [Algorithm::SlidingCounter, buckets(60, Edge::Full), buckets(60, Edge::Interpolated)] {
        let found = attack::all(&limit("1000/60s", algorithm));
        assert!(found.early_units_max > 900, "{algorithm}: {found:?}");
    }
    let found = attack::all(&limit("10000/60s", compact(16)));
    assert!(found.early_units_max > 100, "merging costs something: {found:?}");
}
