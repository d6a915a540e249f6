//! The size of a decision, and no allocation for one charge of a rule with one limit.
//!
//! A test program of its own, because the global allocator is per program.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use slidegate::store::{BoxStore, MemoryStore};
use slidegate::time::ManualClock;
use slidegate::{Admission, Algorithm, Decision, Limiter, Rule};

/// The system allocator with a counter per thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator unchanged; the counter is a plain cell of the thread and
// allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that ends has no counter any more.
        let _ended = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `alloc` above, with the same layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocations that this thread makes during `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// The algorithms without heap memory.
const FLAT: [Algorithm; 3] = [Algorithm::SlidingCounter, Algorithm::FixedWindow, Algorithm::Gcra];

fn rule(algorithm: Algorithm) -> Rule {
    Rule::builder("api").limit("1000/10s".parse().unwrap()).algorithm(algorithm).build().unwrap()
}

fn memory() -> MemoryStore<ManualClock> {
    MemoryStore::with_clock(ManualClock::at_us(1_745_000_145_000_000))
}

/// A future that is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("memory never waits"),
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(7)))), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn a_decision_is_small() {
    assert!(size_of::<Decision<'_>>() <= 96, "{} bytes", size_of::<Decision<'_>>());
}

#[test]
fn a_check_of_one_charge_allocates_nothing() {
    for algorithm in FLAT {
        let (rule, limiter) = (rule(algorithm), Limiter::new(memory()));
        let admission = Admission::new(&[rule.charge("alice", 1).unwrap()]).unwrap();
        assert!(limiter.check(&rule, "alice").unwrap().allowed());
        let (mut allowed, mut denied) = (0, 0);
        let count = allocations(|| {
            for call in 0..3_000 {
                let decision = match call % 4 {
                    0 => limiter.check(&rule, "alice"),
                    1 => limiter.check_n(&rule, "alice", 2),
                    2 => limiter.decide(&admission),
                    _ => ready(limiter.check_async(&rule, "alice")),
                };
                let decision = decision.unwrap();
                let numbers = (decision.used(), decision.remaining(), decision.retry_after());
                std::hint::black_box((numbers, decision.reset_after(), decision.verdicts().count()));
                if decision.allowed() {
                    allowed += 1;
                } else {
                    denied += 1;
                }
                limiter.clock().advance(Duration::from_micros(100));
            }
        });
        assert!(allowed > 500 && denied > 500, "{algorithm}: {allowed} allowed, {denied} denied");
        assert_eq!(count, 0, "{algorithm}: allocations of {allowed} admissions and {denied} denials");
    }
}

#[test]
fn a_check_of_a_boxed_store_that_never_waits_allocates_nothing() {
    for algorithm in FLAT {
        let (rule, limiter) = (rule(algorithm), Limiter::new(BoxStore::new(memory())));
        ready(limiter.check_async(&rule, "alice")).unwrap();
        let count = allocations(|| {
            for _ in 0..1_500 {
                std::hint::black_box(ready(limiter.check_async(&rule, "alice")).unwrap().allowed());
            }
        });
        assert_eq!(count, 0, "{algorithm}");
    }
}

#[test]
fn a_receipt_is_built_on_demand_and_is_the_same_every_time() {
    for algorithm in Algorithm::ALL {
        let (rule, limiter) = (rule(algorithm), Limiter::new(memory()));
        let decision = limiter.check_n(&rule, "alice", 3).unwrap();
        let (first, second) = (decision.receipt().unwrap(), decision.receipt().unwrap());
        assert_eq!(first, second, "{algorithm}");
        assert_eq!(decision.clone().into_owned().receipt(), Some(first.clone()), "{algorithm}");
        assert_eq!(limiter.refund(&second).unwrap().units, 3, "{algorithm}");
        assert!(!limiter.refund(&first).unwrap().applied, "{algorithm}: one refund for both");
        // The name of the rule and the key.
        let count = allocations(|| drop(decision.receipt()));
        assert_eq!(count, 2, "{algorithm}");
    }
}
