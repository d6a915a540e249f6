//! A clock that is set back by more than a second: the file records it once, and nobody waits longer than a window.

use crate::common::child::{ChildOrders, ChildReport};
use crate::common::*;
use rusqlite::Connection;
use slidegate::rule::Edge;
use slidegate::store::{Call, Store, Update};
use slidegate::testing::{Auditor, Rng, block_on};
use slidegate::{Algorithm, Applied, Decision, Receipt, Rule};
use slidegate_sqlite::{Durability, SqliteStore};

const HOUR_US: u64 = 3_600 * SECOND_US;
const YEAR_US: u64 = 365 * DAY_US;

fn retry_us(denied: &Decision<'_>) -> u64 {
    assert!(!denied.allowed());
    u64::try_from(denied.retry_after().unwrap().as_micros()).unwrap()
}

/// The longest wait for the whole limit: a counter fades in the next window, and a bucket leaves a window after its end.
fn wait_max_us(rule: &Rule) -> u64 {
    let limit = rule.limits()[0];
    match rule.algorithm() {
        Algorithm::SlidingCounter => 2 * limit.window_us(),
        Algorithm::SlidingBuckets(..) => limit.window_us() + limit.bucket_us(),
        _ => limit.window_us(),
    }
}

fn steps_on_record(directory: &Directory) -> i64 {
    let file = Connection::open(directory.file()).unwrap();
    file.query_row("SELECT count(*) FROM clock_step", [], |row| row.get(0)).unwrap()
}

fn refund(store: &SqliteStore, at_us: u64, receipt: &Receipt) -> Applied {
    block_on(store.update(Call::at_us(at_us), Update::Refund(receipt))).unwrap()
}

/// A process spends the limit while the clock is a year ahead. Then the clock is corrected.
#[test]
fn a_clock_that_was_a_year_ahead_locks_nobody_out() {
    for (number, algorithm) in Algorithm::ALL.into_iter().enumerate() {
        let directory = Directory::new();
        let (path, durability) = (&directory.file(), Durability::Normal);
        let orders = ChildOrders { path, durability, rate: "5/1h", algorithm: number, cost: 5, times: 1 };
        assert_eq!(orders.start_ahead(YEAR_US / SECOND_US).rest(), [ChildReport::Admitted(5)]);
        let rule = rule(algorithm.name(), &["5/1h"], algorithm);
        let denied = ask(&open(path), Call::now(), &rule, 5).unwrap();
        assert!(retry_us(&denied) <= wait_max_us(&rule), "{algorithm}: {:?}", denied.retry_after());
    }
}

/// The record of the step is all that a denial writes, and it is written once.
#[test]
fn the_wait_after_a_step_holds_and_denials_write_nothing_else() {
    for algorithm in every_algorithm() {
        let directory = Directory::new();
        let rule = rule("api", &["5/1h"], algorithm);
        check(&open(directory.file()), Call::at_us(BOUNDARY_US + YEAR_US), &rule, 5);
        let passes_us =
            BOUNDARY_US + retry_us(&check(&open(directory.file()), Call::at_us(BOUNDARY_US), &rule, 1));
        assert!(passes_us <= BOUNDARY_US + wait_max_us(&rule), "{algorithm}: {passes_us}");
        let before = everything(directory.path());
        for part in 1..10 {
            let (store, now_us) =
                (open(directory.file()), BOUNDARY_US + (passes_us - BOUNDARY_US) / 10 * part);
            let denied = check(&store, Call::at_us(now_us), &rule, 1);
            assert_eq!(now_us + retry_us(&denied), passes_us, "{algorithm}: the wait slides");
            assert!(!peek(&store, Call::at_us(passes_us - 1), &rule, 1).allowed(), "{algorithm}");
        }
        assert!(everything(directory.path()) == before, "{algorithm}: a denial has written");
        assert!(check(&open(directory.file()), Call::at_us(passes_us), &rule, 1).allowed(), "{algorithm}");
        assert_eq!(steps_on_record(&directory), 1, "{algorithm}");
    }
}

#[test]
fn a_clock_set_back_by_a_second_is_not_followed() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5/10s"], Algorithm::SlidingLog));
    check(&store, Call::at_us(BOUNDARY_US), &rule, 5);
    let before = everything(directory.path());
    let back_us = BOUNDARY_US - SECOND_US;
    assert_eq!(retry_us(&check(&store, Call::at_us(back_us), &rule, 1)), 11 * SECOND_US, "time stands still");
    assert!(everything(directory.path()) == before);
    assert_eq!(retry_us(&check(&store, Call::at_us(back_us - 1), &rule, 1)), 10 * SECOND_US);
    assert_eq!(steps_on_record(&directory), 1);
}

/// Nothing was charged on it while the clock was ahead.
#[test]
fn a_state_from_before_the_jump_still_counts() {
    for algorithm in every_algorithm() {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &["5/1h"], algorithm));
        let ask = |at_us, name: &str, cost| {
            block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, cost)])))
                .unwrap()
                .into_owned()
        };
        assert!(ask(BOUNDARY_US, "alice", 5).allowed());
        // Less than a window, so that no sweep deletes it.
        assert!(ask(BOUNDARY_US + HOUR_US / 2, "bob", 5).allowed());
        let denied = ask(BOUNDARY_US + SECOND_US, "alice", 5);
        assert!(retry_us(&denied) >= HOUR_US - SECOND_US, "{algorithm}: {:?}", denied.retry_after());
        assert!(!ask(BOUNDARY_US + SECOND_US, "bob", 1).allowed(), "{algorithm}");
    }
}

#[test]
fn receipts_from_before_a_step_give_back_what_is_still_counted_as_charged() {
    for algorithm in Algorithm::ALL {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &["5/1h"], algorithm));
        let charge = |at_us, name: &str, cost| {
            let decided = block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, cost)])));
            decided.unwrap().receipt().expect("room for it")
        };
        let spent = charge(BOUNDARY_US, "alice", 2);
        let kept = charge(BOUNDARY_US, "alice", 2);
        assert_eq!(refund(&store, BOUNDARY_US, &spent).units, 2, "{algorithm}");
        let ahead_us = BOUNDARY_US + YEAR_US;
        let ahead = charge(ahead_us, "bob", 4);
        // This deletes the records of receipts that have expired by now.
        let other = charge(ahead_us, "carol", 1);
        assert_eq!(refund(&store, ahead_us, &other).units, 1, "{algorithm}");

        let back_us = BOUNDARY_US + SECOND_US;
        assert_eq!(
            refund(&store, back_us, &ahead),
            Applied::default(),
            "{algorithm}: it counts as of the step"
        );
        assert_eq!(refund(&store, back_us, &spent), Applied::default(), "{algorithm}: spent");
        assert_eq!(refund(&store, back_us, &kept), Applied::default(), "{algorithm}: it had expired");
        let later = charge(back_us, "bob", 1);
        assert_eq!(refund(&store, back_us + 1, &later).units, 1, "{algorithm}: made after the step");
        assert_eq!(refund(&store, back_us + 1, &later), Applied::default(), "{algorithm}");
        let bob = block_on(store.inspect(Call::at_us(back_us + 1), &rule, key("bob"))).unwrap();
        assert_eq!(bob[0].used, 4, "{algorithm}");
    }
}

/// A short step, as of a time daemon: the receipt of an earlier state is good.
#[test]
fn a_step_of_seconds_voids_only_the_receipts_of_these_seconds() {
    for algorithm in [Algorithm::SlidingLog, Algorithm::Gcra] {
        let directory = Directory::new();
        let (store, rule) = (open(directory.file()), rule("api", &["5/1h"], algorithm));
        let charge = |at_us, name: &str| {
            let decided = block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, 3)])));
            decided.unwrap().receipt().unwrap()
        };
        let (early, late) = (charge(BOUNDARY_US, "alice"), charge(BOUNDARY_US + 60 * SECOND_US, "bob"));
        let back_us = BOUNDARY_US + 58 * SECOND_US;
        assert_eq!(refund(&store, back_us, &early).units, if algorithm == Algorithm::Gcra { 2 } else { 3 });
        assert_eq!(refund(&store, back_us, &late), Applied::default(), "{algorithm}");
    }
}

/// The bound on true time of an algorithm whose clock is set back now and then, in multiples of the limit.
fn bound(rule: &Rule) -> u64 {
    let limit = rule.limits()[0].units();
    match rule.algorithm() {
        Algorithm::SlidingLog | Algorithm::CompactLog(_) | Algorithm::SlidingBuckets(_, Edge::Full) => limit,
        Algorithm::Gcra => 2 * limit - 1,
        // Their windows are those of the clock: a step cuts one short.
        _ => 3 * limit,
    }
}

/// True time only moves forward; the clock of the processes is set back again and again.
#[test]
fn a_clock_set_back_again_and_again_never_admits_more_and_delays_nobody_longer() {
    for algorithm in every_algorithm() {
        for seed in 0..2 {
            let directory = Directory::new();
            let (mut rng, rule) = (Rng::new(seed), rule("api", &["20/10s"], algorithm));
            let window_us = rule.limits()[0].window_us();
            let stores = [open(directory.file()), open(directory.file())];
            let (mut auditor, mut true_us, mut behind_us) = (Auditor::new(20, window_us), BOUNDARY_US, 0);
            for step in 0..500 {
                true_us += rng.below(SECOND_US);
                if rng.one_in(40) {
                    behind_us += *rng.pick(&[SECOND_US / 2, 3 * SECOND_US, 12 * SECOND_US, HOUR_US]);
                }
                let (cost, now) = (rng.between(1, 6), Call::at_us(true_us - behind_us));
                let decision = check(rng.pick(&stores), now, &rule, cost);
                auditor.saw(true_us, cost, decision.allowed());
                let story = format!("{algorithm}, seed {seed}, step {step}");
                let wait_us = decision.retry_after().map_or(0, |wait| wait.as_micros());
                assert!(wait_us <= u128::from(wait_max_us(&rule) + SECOND_US), "{story}: {wait_us}");
                let most = auditor.findings().most_in_window;
                assert!(most <= bound(&rule), "{story}: {most} in a window");
            }
        }
    }
}

#[test]
fn callers_that_notice_a_step_together_record_it_once() {
    let directory = Directory::new();
    let rule = rule("api", &["5/1h"], Algorithm::SlidingLog);
    check(&open(directory.file()), Call::at_us(BOUNDARY_US + YEAR_US), &rule, 4);
    let admitted: usize = std::thread::scope(|scope| {
        let ask = || {
            let store = open(directory.file());
            (0..4).filter(|_| check(&store, Call::at_us(BOUNDARY_US), &rule, 1).allowed()).count()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((admitted, steps_on_record(&directory)), (1, 1));
}

/// Two processes whose clocks differ by an hour.
#[test]
fn the_record_of_steps_is_bounded() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5/1h"], Algorithm::SlidingLog));
    let ask = |at_us, name: &str| {
        block_on(store.check(Call::at_us(at_us), &admission(&[(&rule, name, 5)]))).unwrap().into_owned()
    };
    let receipt = ask(BOUNDARY_US + 2 * HOUR_US, "alice").receipt().unwrap();
    for second in 0..100 {
        ask(BOUNDARY_US + HOUR_US + second * SECOND_US, &format!("ahead-{second}"));
        ask(BOUNDARY_US + second * SECOND_US, &format!("behind-{second}"));
    }
    assert_eq!(steps_on_record(&directory), 64);
    let now_us = BOUNDARY_US + 100 * SECOND_US;
    assert!(ask(now_us, "alice").retry_after().unwrap_or_default().as_secs() <= 3_600);
    assert_eq!(refund(&store, now_us, &receipt), Applied::default());
}
