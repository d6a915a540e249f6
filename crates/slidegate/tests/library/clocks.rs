//! Clocks that are set back or jump ahead: a limit may bind too long, never too short.

use std::time::Duration;

use crate::common::*;
use slidegate::store::MemoryStore;

const HOUR_US: u64 = 3_600 * SECOND_US;

#[test]
fn a_clock_set_back_admits_no_more() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let mut now_us = BOUNDARY_US + 3 * SECOND_US;
        let store = MemoryStore::new();
        assert!(check(&store, now_us, &rule, 3).allowed());
        now_us -= HOUR_US;
        assert!(check(&store, now_us, &rule, 3).retry_after() > Some(Duration::ZERO), "{algorithm}");
        let mut admitted = 3;
        // During the hour that the clock repeats, the charges still count.
        for _ in 0..360 {
            admitted += u64::from(check(&store, now_us, &rule, 1).allowed());
            now_us += 9 * SECOND_US;
        }
        assert!(admitted <= 5, "{algorithm}: {admitted}");
        now_us += HOUR_US;
        assert!(check(&store, now_us, &rule, 5).allowed(), "{algorithm}: it has caught up");
    }
}

/// The wait is exact on a clock that was set back, too.
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
fn a_jump_ahead_expires_entries_early_but_a_peek_drops_nothing() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let store = MemoryStore::new();
        let (now_us, ahead_us) = (BOUNDARY_US, BOUNDARY_US + HOUR_US);
        check(&store, now_us, &rule, 5);
        assert!(peek(&store, ahead_us, &rule, 5).allowed(), "{algorithm}");
        assert!(!peek(&store, now_us, &rule, 1).allowed(), "{algorithm}: nothing was charged meanwhile");
        check(&store, ahead_us, &rule, 5);
        assert!(!peek(&store, now_us, &rule, 1).allowed(), "{algorithm}: time stands still at the leap");
    }
}

/// On a clock that was set back, `used` does not depend on the step.
#[test]
fn used_does_not_grow_with_the_step() {
    for algorithm in every_algorithm() {
        let rule = rule("api", &["5/10s"], algorithm);
        let store = MemoryStore::new();
        check(&store, BOUNDARY_US, &rule, 5);
        assert_eq!(used(&store, BOUNDARY_US - DAY_US, &rule), 5, "{algorithm}");
        store.change(BOUNDARY_US - DAY_US, &crate::common::rule("api", &["5/1d"], algorithm));
        assert_eq!(used(&store, BOUNDARY_US - DAY_US, &rule), 5, "{algorithm}");
    }
}
