//! A clock that is set back between two calls, and sweeping meanwhile.

use crate::common::*;
use slidegate::Algorithm;
use slidegate::store::{Call, Store, Update};
use slidegate::testing::block_on;
use slidegate::time::ManualClock;

const HOUR_US: u64 = 3_600 * SECOND_US;

#[test]
fn a_clock_set_back_by_an_hour_between_two_processes_admits_no_more() {
    for algorithm in Algorithm::ALL {
        let directory = Directory::new();
        let rule = rule("api", &["5/10s"], algorithm);
        let at = |now_us| open(directory.file()).on_clock(ManualClock::at_us(now_us));
        assert!(check(&at(BOUNDARY_US), Call::now(), &rule, 3).allowed());
        let back = at(BOUNDARY_US - HOUR_US);
        let denied = check(&back, Call::now(), &rule, 3);
        assert_eq!((denied.allowed(), denied.used()), (false, Some(3)), "{algorithm}");
        let passes_us =
            BOUNDARY_US - HOUR_US + u64::try_from(denied.retry_after().unwrap().as_micros()).unwrap();
        assert!(!peek(&at(passes_us - 1), Call::now(), &rule, 3).allowed(), "{algorithm}");
        assert!(peek(&at(passes_us), Call::now(), &rule, 3).allowed(), "{algorithm}");
        assert!(check(&back, Call::now(), &rule, 2).allowed(), "{algorithm}: the rest of the limit");
        assert!(!check(&back, Call::now(), &rule, 1).allowed(), "{algorithm}");
    }
}

/// Its record of spent receipts may be gone by then, so it must not work again.
#[test]
fn a_receipt_that_was_refused_as_expired_stays_expired_when_the_clock_is_set_back() {
    for algorithm in Algorithm::ALL {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &["5/10s"], algorithm));
        let receipt = check(&store, Call::at_us(BOUNDARY_US), &rule, 3).receipt().unwrap();
        let refunded = |at_us| block_on(store.update(Call::at_us(at_us), Update::Refund(&receipt))).unwrap();
        assert!(!refunded(BOUNDARY_US + HOUR_US).applied, "{algorithm}");
        assert!(!refunded(BOUNDARY_US + SECOND_US).applied, "{algorithm}: the clock was set back");
    }
}

/// They have expired by the latest stored time, but not by the clock that was set back.
#[test]
fn keys_that_begin_on_a_clock_set_back_are_not_swept_before_their_time() {
    let steps = [("5/10s", HOUR_US), ("5/100ms", SECOND_US)];
    for (algorithm, (rate, step_us)) in
        Algorithm::ALL.into_iter().flat_map(|algorithm| steps.map(|step| (algorithm, step)))
    {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &[rate], algorithm));
        let ask = |at_us, name: &str, cost| {
            block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, cost)]))).unwrap().allowed()
        };
        assert!(ask(BOUNDARY_US, "before", 1));
        let back_us = BOUNDARY_US - step_us;
        assert!(ask(back_us, "late", 5));
        for number in 0..20 {
            assert!(ask(back_us, &format!("other-{number}"), 1));
        }
        assert!(!ask(back_us, "late", 1), "{algorithm}: its state was swept");
    }
}

#[test]
fn admissions_sweep_expired_states() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5/10s"], Algorithm::SlidingLog));
    let ask = |at_us, name: &str| {
        block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, 1)]))).map(drop).unwrap();
    };
    for number in 0..400 {
        ask(BOUNDARY_US, &format!("client-{number}"));
    }
    let rows = || -> i64 {
        let file = rusqlite::Connection::open(directory.file()).unwrap();
        file.query_row("SELECT count(*) FROM state", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(rows(), 400);
    for number in 0..60 {
        ask(BOUNDARY_US + HOUR_US + number * 60 * SECOND_US, "one who stays");
    }
    assert_eq!(rows(), 1);
}
