//! Clocks that are set back or leap ahead: a limit may bind for longer, never for shorter, than it should.

use std::time::Duration;

use crate::common::*;
use slidegate::store::MemoryStore;
use slidegate::time::{Clock, JumpingClock, ManualClock};

const HOUR_US: i64 = 3_600 * 1_000_000;

#[test]
fn a_clock_set_back_admits_no_more() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let clock = JumpingClock::new(ManualClock::at_us(BOUNDARY_US + 3 * SECOND_US));
        let store = MemoryStore::new();
        assert!(check(&store, clock.now_us(), &rule, 3).allowed());
        clock.jump_us(-HOUR_US);
        assert!(check(&store, clock.now_us(), &rule, 3).retry_after() > Some(Duration::ZERO), "{algorithm}");
        let mut admitted = 3;
        // For the hour that the clock repeats, what was charged keeps counting.
        for _ in 0..360 {
            admitted += u64::from(check(&store, clock.now_us(), &rule, 1).allowed());
            clock.inner().advance(Duration::from_secs(9));
        }
        assert!(admitted <= 5, "{algorithm}: {admitted}");
        clock.inner().advance(Duration::from_secs(3_600));
        assert!(check(&store, clock.now_us(), &rule, 5).allowed(), "{algorithm}: it has caught up");
    }
}

/// The wait counts on the clock that was set back: it is exact there too.
#[test]
fn waits_are_exact_on_a_clock_set_back() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US, &rule, 5);
        let now_us = BOUNDARY_US - 100 * SECOND_US;
        let passes_us = now_us + retry_us(&peek(&store, now_us, &rule, 2));
        assert!(!peek(&store, passes_us - 1, &rule, 2).allowed(), "{algorithm}");
        assert!(peek(&store, passes_us, &rule, 2).allowed(), "{algorithm}");
    }
}

#[test]
fn a_clock_that_leaps_ahead_lets_entries_leave_early_but_looking_drops_nothing() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let clock = JumpingClock::new(ManualClock::at_us(BOUNDARY_US));
        let store = MemoryStore::new();
        check(&store, clock.now_us(), &rule, 5);
        clock.jump_us(HOUR_US);
        assert!(peek(&store, clock.now_us(), &rule, 5).allowed(), "{algorithm}");
        clock.jump_us(-HOUR_US);
        assert!(
            !peek(&store, clock.now_us(), &rule, 1).allowed(),
            "{algorithm}: nothing was charged meanwhile"
        );
        clock.jump_us(HOUR_US);
        check(&store, clock.now_us(), &rule, 5);
        clock.jump_us(-HOUR_US);
        assert!(
            !peek(&store, clock.now_us(), &rule, 1).allowed(),
            "{algorithm}: time stands still at the leap"
        );
    }
}

/// What a clock set back shows is what was used, not how far it was set back.
#[test]
fn use_does_not_grow_with_the_step() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US, &rule, 5);
        assert_eq!(used(&store, BOUNDARY_US - DAY_US, &rule), 5, "{algorithm}");
        store.change(BOUNDARY_US - DAY_US, &crate::common::rule("api", &["5/1d"], algorithm));
        assert_eq!(used(&store, BOUNDARY_US - DAY_US, &rule), 5, "{algorithm}");
    }
}
