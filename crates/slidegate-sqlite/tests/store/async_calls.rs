//! The asynchronous verbs: they block no executor, end by their deadlines, and are not executed without a caller.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::*;
use rusqlite::Connection;
use slidegate::store::{Call, Store, StoreError};
use slidegate::testing::block_on;
use slidegate::time::{Clock, SystemClock};
use slidegate::{Admission, Algorithm, Limiter, Rule};
use slidegate_sqlite::{QUEUE_MAX, SqliteStore};

fn lock(directory: &Directory) -> Connection {
    let other = Connection::open(directory.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn is_timed_out(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { why } if why.contains("timed out"))
}

/// Runs all futures on this thread. Returns their results and the duration of the longest poll.
fn run_all<T>(futures: Vec<impl Future<Output = T>>, clock: &SystemClock) -> (Vec<T>, u64) {
    let mut pending: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let (mut answers, mut longest_us) = (Vec::new(), 0);
    block_on(std::future::poll_fn(|context| {
        pending.retain_mut(|future| {
            let begun_us = clock.now_us();
            let polled = future.as_mut().poll(context);
            longest_us = longest_us.max(clock.now_us() - begun_us);
            match polled {
                Poll::Ready(answer) => answers.push(answer),
                Poll::Pending => return true,
            }
            false
        });
        if pending.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }));
    (answers, longest_us)
}

/// One after the other would take 30 s, on the thread of the executor.
#[test]
fn a_hundred_calls_on_a_locked_file_end_after_about_one_deadline() {
    const DEADLINE_US: u64 = 300_000;
    let directory = Directory::new();
    let options = options(directory.file()).deadline(Duration::from_micros(DEADLINE_US)).unwrap();
    let store = SqliteStore::open_with(&options).unwrap();
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let (other, request, clock) = (lock(&directory), admission(&[(&rule, "alice", 1)]), SystemClock::new());
    let begun_us = clock.now_us();
    let calls = (0..100).map(|_| store.check(Call::now(), &request)).collect();
    let (answers, longest_us) = run_all(calls, &clock);
    let all_us = clock.now_us() - begun_us;
    assert_eq!(answers.len(), 100);
    for answer in answers {
        let error = answer.unwrap_err();
        assert!(is_timed_out(&error) && !error.maybe_charged(), "{error}");
    }
    assert!((DEADLINE_US..10 * DEADLINE_US).contains(&all_us), "all were answered after {all_us} us");
    assert!(longest_us < DEADLINE_US / 2, "the executor was blocked for {longest_us} us");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(used(&store, Call::now(), &rule), 0);
    assert!(check(&store, Call::now(), &rule, 1).allowed());
}

#[test]
fn a_batch_on_a_locked_file_ends_after_about_one_deadline() {
    const DEADLINE_US: u64 = 100_000;
    let directory = Directory::new();
    let options = options(directory.file()).deadline(Duration::from_micros(DEADLINE_US)).unwrap();
    let store = SqliteStore::open_with(&options).unwrap();
    let rule = rule("api", &["1000/400d"], Algorithm::SlidingLog);
    let (_other, clock) = (lock(&directory), SystemClock::new());
    let batch: Vec<_> = (0..100).map(|_| admission(&[(&rule, "alice", 1)])).collect();
    for call in [Call::now(), Call::now().blocking()] {
        let begun_us = clock.now_us();
        let answers = block_on(store.check_batch(call, &batch));
        let all_us = clock.now_us() - begun_us;
        assert!(
            answers.len() == 100 && answers.iter().all(|answer| is_timed_out(answer.as_ref().unwrap_err()))
        );
        assert!((DEADLINE_US..20 * DEADLINE_US).contains(&all_us), "answered after {all_us} us");
    }
}

/// The deadline of the store is two minutes.
#[test]
fn the_deadline_of_a_call_counts_for_plain_and_asynchronous_verbs() {
    let directory = Directory::new();
    let (limiter, rule) = (Limiter::new(open(directory.file())), Rule::new("api", "5/400d").unwrap());
    let other = lock(&directory);
    let soon = Duration::from_millis(50);
    let ways: [&dyn Fn(Duration) -> String; 2] = [
        &|deadline| limiter.with_deadline(deadline).check(&rule, "alice").unwrap_err().to_string(),
        &|deadline| {
            block_on(limiter.with_deadline(deadline).check_async(&rule, "alice")).unwrap_err().to_string()
        },
    ];
    for ask in ways {
        let clock = SystemClock::new();
        let begun_us = clock.now_us();
        let error = ask(soon);
        let waited_us = clock.now_us() - begun_us;
        assert!(error.contains("timed out"), "{error}");
        assert!((49_000..30_000_000).contains(&waited_us), "gave up after {waited_us} us");
    }
    other.execute_batch("ROLLBACK").unwrap();
    for ask in ways {
        let error = ask(Duration::ZERO);
        assert!(error.contains("timed out"), "a deadline that has passed: {error}");
    }
    assert_eq!(limiter.inspect(&rule, "alice").unwrap()[0].used, 0);
}

#[test]
fn a_call_whose_future_was_dropped_is_not_executed() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["100/400d"], Algorithm::SlidingLog));
    let other = lock(&directory);
    let request = admission(&[(&rule, "alice", 10)]);
    // The first runs and waits for the lock, the others are queued.
    let mut calls: Vec<_> = (0..5).map(|_| Box::pin(store.check(Call::now(), &request))).collect();
    for call in &mut calls {
        assert!(poll(call.as_mut()).is_pending());
    }
    let last = calls.pop().unwrap();
    drop(calls);
    other.execute_batch("ROLLBACK").unwrap();
    assert!(block_on(last).unwrap().allowed());
    assert_eq!(used(&store, Call::now(), &rule), 10);
    drop(store.check(Call::now(), &request));
    assert_eq!(used(&store, Call::now(), &rule), 10, "what was never polled was never asked");
}

#[test]
fn calls_beyond_the_queue_are_refused_at_once_and_the_others_executed() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5000/400d"], Algorithm::FixedWindow));
    let other = lock(&directory);
    let request = admission(&[(&rule, "alice", 1)]);
    let mut calls: Vec<_> =
        (0..QUEUE_MAX + 10).map(|_| Box::pin(store.check(Call::now(), &request))).collect();
    let mut refused = 0;
    calls.retain_mut(|call| match poll(call.as_mut()) {
        Poll::Pending => true,
        Poll::Ready(answer) => {
            let error = answer.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, StoreError::Unavailable { .. }), "{text}");
            assert!(text.contains("1024 calls") && text.contains("try later"), "{text}");
            refused += 1;
            false
        }
    });
    // One of them runs at some time.
    assert!((9..=10).contains(&refused), "{refused} were refused");
    other.execute_batch("ROLLBACK").unwrap();
    let executed = calls.len() as u64;
    for call in calls {
        assert!(block_on(call).unwrap().allowed());
    }
    assert_eq!(used(&store, Call::now(), &rule), executed);
}

/// The thread of the store does not keep the file open.
#[cfg(target_os = "linux")]
#[test]
fn dropping_a_store_closes_its_file() {
    let directory = Directory::new();
    let rule = rule("api", &["5/400d"], Algorithm::SlidingLog);
    let opened = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = descriptors.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        paths.filter(|path| path.starts_with(directory.path())).count()
    };
    for _ in 0..50 {
        let store = open(directory.file());
        let request = admission(&[(&rule, "alice", 1)]);
        let mut dropped = Box::pin(store.check(Call::now(), &request));
        let _executed_or_not = poll(dropped.as_mut());
        drop(dropped);
        block_on(store.peek(Call::now(), &request)).unwrap();
        assert!(opened() > 0);
        drop(store);
        assert_eq!(opened(), 0);
    }
}

/// Tasks of any executor: what they await can be sent, and borrows nothing of theirs that the thread would need.
#[test]
fn many_threads_await_one_store_and_admit_exactly_the_limit() {
    let directory = Directory::new();
    let limiter = Arc::new(Limiter::new(open(directory.file())));
    let admitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                let future = async move {
                    let (rule, mut admitted) = (Rule::new("api", "100/400d").unwrap(), 0);
                    for _ in 0..50 {
                        let decision = limiter.check_async(&rule, "alice").await.unwrap();
                        admitted += usize::from(decision.allowed());
                    }
                    admitted
                };
                scope.spawn(|| block_on(future))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 100);
}

/// Overrides leave some keys unlimited: they are answered, and nothing is written for them.
#[test]
fn unlimited_charges_are_answered_in_both_forms() {
    let directory = Directory::new();
    let (store, rule) = (open(directory.file()), rule("api", &["5/400d"], Algorithm::SlidingLog));
    let charges = [("alice", 2), ("ci-7", 50), ("alice", 3)];
    let charges = charges.map(|(name, cost)| rule.charge(name, cost).unwrap());
    for (call, allowed) in [(Call::now(), true), (Call::now().blocking(), false)] {
        let request = Admission::partly_unlimited(&charges, |index| index == 1).unwrap();
        let decision = block_on(store.check(call, &request)).unwrap();
        assert_eq!((decision.allowed(), decision.used()), (allowed, Some(5)));
        assert_eq!(
            decision.verdicts().map(|verdict| verdict.unlimited()).collect::<Vec<_>>(),
            [false, true, false]
        );
        let none = Admission::partly_unlimited(&charges, |_| true).unwrap();
        assert!(block_on(store.check(call, &none)).unwrap().allowed());
        assert!(block_on(store.peek(call, &none)).unwrap().receipt().is_none());
    }
}
