//! A part of any algorithm.
//!
//! A part of a `sliding-log` table has narrow or wide slots. It starts narrow. After every complete sweep of the part, and
//! when many logs have outgrown their slots, a sample of its keys decides: with wide slots a key that is seen ten times in a window needs one cache line; with
//! narrow slots a million keys that are seen once take two thirds of the memory. The two thresholds differ by a factor
//! of eight, as a hysteresis. Each part changes on its own, so that no call moves more keys than growing does.

use super::part::Part;
use super::room::rounded;
use crate::algorithm::{
    CompactLog, FixedWindow, Gcra, Log, NarrowLog, SlidingBuckets, SlidingCounter, SlidingLog, Window,
};
use crate::rule::Algorithm;
use crate::store::memory::budget::Budget;

/// Most keys in the sample.
const SAMPLED_MAX: usize = 256;
/// A wide part of fewer keys stays wide: there is little to save.
const NARROW_KEYS_MIN: usize = 16;
/// Slots become wide when one key in this many wants a wide slot.
const WIDE_FROM: usize = 4;
/// Slots become narrow again when at most one key in this many wants a wide slot.
const NARROW_FROM: usize = 32;

/// A part per algorithm, so that a slot is as large as the algorithm's state.
#[derive(Debug)]
pub(in crate::store::memory) enum AnyPart {
    NarrowLog(Part<NarrowLog>),
    SlidingLog(Part<SlidingLog>),
    CompactLog(Part<CompactLog>),
    SlidingBuckets(Part<SlidingBuckets>),
    SlidingCounter(Part<SlidingCounter>),
    FixedWindow(Part<FixedWindow>),
    Gcra(Part<Gcra>),
}

/// Runs the same expression on the part of any algorithm.
macro_rules! with_part {
    ($any:expr, $part:ident => $result:expr) => {
        match $any {
            AnyPart::NarrowLog($part) => $result,
            AnyPart::SlidingLog($part) => $result,
            AnyPart::CompactLog($part) => $result,
            AnyPart::SlidingBuckets($part) => $result,
            AnyPart::SlidingCounter($part) => $result,
            AnyPart::FixedWindow($part) => $result,
            AnyPart::Gcra($part) => $result,
        }
    };
}

/// Runs the same expression on a part and a state of its algorithm; `None` if the state is of another algorithm.
macro_rules! with_part_and_window {
    ($any:expr, $any_window:expr, $part:ident, $state:ident => $result:expr) => {
        match ($any, $any_window) {
            (AnyPart::NarrowLog($part), AnyWindow::SlidingLog(state)) => {
                let $state = state.refitted();
                Some($result)
            }
            (AnyPart::SlidingLog($part), AnyWindow::SlidingLog($state)) => Some($result),
            (AnyPart::CompactLog($part), AnyWindow::CompactLog($state)) => Some($result),
            (AnyPart::SlidingBuckets($part), AnyWindow::SlidingBuckets($state)) => Some($result),
            (AnyPart::SlidingCounter($part), AnyWindow::SlidingCounter($state)) => Some($result),
            (AnyPart::FixedWindow($part), AnyWindow::FixedWindow($state)) => Some($result),
            (AnyPart::Gcra($part), AnyWindow::Gcra($state)) => Some($result),
            _ => None,
        }
    };
}

pub(in crate::store::memory) use {with_part, with_part_and_window};

/// A state that has a variant of [`AnyPart`].
pub(in crate::store::memory) trait PartState: Window {
    fn wrap(part: Part<Self>) -> AnyPart;

    /// The part; `None` if it is of another state.
    fn part_in(any: &mut AnyPart) -> Option<&mut Part<Self>>;
}

macro_rules! part_states {
    ($($state:ident)+) => {$(
        impl PartState for $state {
            fn wrap(part: Part<Self>) -> AnyPart {
                AnyPart::$state(part)
            }

            #[inline]
            fn part_in(any: &mut AnyPart) -> Option<&mut Part<Self>> {
                if let AnyPart::$state(part) = any { Some(part) } else { None }
            }
        }
    )+};
}

part_states! { NarrowLog SlidingLog CompactLog SlidingBuckets SlidingCounter FixedWindow Gcra }

impl AnyPart {
    /// An empty part for all fingerprints.
    pub(in crate::store::memory) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingLog => Self::NarrowLog(Part::default()),
            Algorithm::CompactLog(_) => Self::CompactLog(Part::default()),
            Algorithm::SlidingBuckets(..) => Self::SlidingBuckets(Part::default()),
            Algorithm::SlidingCounter => Self::SlidingCounter(Part::default()),
            Algorithm::FixedWindow => Self::FixedWindow(Part::default()),
            Algorithm::Gcra => Self::Gcra(Part::default()),
        }
    }

    /// An empty part of the same algorithm for all fingerprints.
    pub(in crate::store::memory) fn emptied(&self) -> Self {
        fn empty<S: PartState>(_: &Part<S>) -> AnyPart {
            S::wrap(Part::default())
        }
        match self {
            Self::SlidingLog(_) => Self::NarrowLog(Part::default()),
            _ => with_part!(self, part => empty(part)),
        }
    }

    pub(in crate::store::memory) fn len(&self) -> usize {
        with_part!(self, part => part.len())
    }

    /// Bytes of the array, as the budget counts them.
    pub(in crate::store::memory) fn bytes(&self) -> usize {
        with_part!(self, part => part.bytes())
    }

    /// Changes the slot width to suit most keys, if the budget has room for both arrays meanwhile.
    pub(in crate::store::memory) fn refit(&mut self, budget: &Budget) {
        let refitted = match self {
            Self::NarrowLog(part) => {
                let (keys, wanting) = wanting_wide_slots(part);
                let suits = wanting * WIDE_FROM >= keys && wanting > 0;
                suits.then(|| refitted(part, budget)).flatten().map(Self::SlidingLog)
            }
            Self::SlidingLog(part) => {
                let (keys, wanting) = wanting_wide_slots(part);
                let suits = wanting * NARROW_FROM <= keys && (keys == 0 || keys >= NARROW_KEYS_MIN);
                suits.then(|| refitted(part, budget)).flatten().map(Self::NarrowLog)
            }
            _ => None,
        };
        if let Some(refitted) = refitted {
            *self = refitted;
        }
    }
}

/// The size of the sample, and how many of its keys want a wide slot. Keys are in the order of their hashes, so the
/// first keys are a random sample.
fn wanting_wide_slots<const PLACES: usize>(part: &Part<Log<PLACES>>) -> (usize, usize) {
    let sample = part.iter().take(SAMPLED_MAX);
    sample.fold((0, 0), |(keys, wanting), (_, log)| (keys + 1, wanting + usize::from(log.wants_wide_slot())))
}

/// The same keys in slots of another width; leaves this part empty. `None`, without any change, if the budget has no
/// room for both arrays.
fn refitted<const FROM: usize, const TO: usize>(
    part: &mut Part<Log<FROM>>,
    budget: &Budget,
) -> Option<Part<Log<TO>>> {
    let wanted = Part::<Log<TO>>::bytes_with(Part::<Log<TO>>::homes_for(part.len()));
    budget.take(wanted).ok()?;
    let before = part.bytes();
    let (mut heap_before, mut heap_after) = (0, 0);
    let converted = part.take().converted(|log| {
        heap_before += rounded(log.heap_bytes());
        let log: Log<TO> = log.refitted();
        heap_after += rounded(log.heap_bytes());
        log
    });
    // In one step, so that growing heap memory is covered by the freed array.
    budget.settle(before + wanted + heap_before, converted.bytes() + heap_after);
    Some(converted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Decimal, Limit};

    const KEYS: u64 = 3_000;

    fn limit() -> Limit {
        Limit::new("1000/1h".parse().unwrap(), Decimal::ZERO, Algorithm::SlidingLog)
    }

    /// A log of `requests` requests, a second apart, of which the last came at `now_us`.
    fn log(now_us: u64, requests: u64, cost: u64) -> SlidingLog {
        let mut log = SlidingLog::default();
        for request in (0..requests).rev() {
            log.charge(&limit(), now_us - request * 1_000_000, cost);
        }
        log
    }

    fn put<S: PartState>(any: &mut AnyPart, budget: &Budget, key: u64, state: S) {
        let part = S::part_in(any).expect("it has this width");
        let before = part.bytes();
        budget.take_anyway(rounded(state.heap_bytes()));
        part.put(key, state);
        budget.settle(before, part.bytes());
    }

    /// A part in which one key in `one_in` made ten requests of that cost, and the others one.
    fn part_of(budget: &Budget, one_in: u64, cost: u64) -> AnyPart {
        let mut any = AnyPart::new(Algorithm::SlidingLog);
        for key in 1..=KEYS {
            let state: NarrowLog = log(60_000_000, if key % one_in == 0 { 10 } else { 1 }, cost).refitted();
            put(&mut any, budget, key.wrapping_mul(0x9e37_79b9_7f4a_7c15), state);
        }
        any
    }

    fn bytes(any: &AnyPart) -> u64 {
        let heap =
            with_part!(any, part => part.iter().map(|(_, state)| rounded(state.heap_bytes())).sum::<usize>());
        (any.bytes() + heap) as u64
    }

    fn usages(any: &AnyPart) -> Vec<(u64, u64)> {
        with_part!(any, part => {
            part.iter().map(|(key, state)| (key, state.usage(&limit(), 60_000_000).used)).collect()
        })
    }

    #[test]
    fn slots_are_as_wide_as_most_keys_need() {
        for (one_in, cost, wide) in
            [(1, 1, true), (3, 1, true), (10, 1, false), (5_000, 1, false), (1, 2, false)]
        {
            let budget = Budget::new(1 << 30);
            let mut any = part_of(&budget, one_in, cost);
            let (used, before) = (usages(&any), bytes(&any));
            any.refit(&budget);
            let is_wide = matches!(any, AnyPart::SlidingLog(_));
            assert_eq!(is_wide, wide, "one in {one_in} with ten of cost {cost}");
            assert_eq!(usages(&any), used);
            assert_eq!(budget.taken(), bytes(&any), "one in {one_in}");
            assert!(!wide || bytes(&any) < before * 5 / 4, "{} after {before}", bytes(&any));
        }
    }

    #[test]
    fn wide_slots_become_narrow_again_when_few_need_them() {
        let budget = Budget::new(1 << 30);
        let mut any = part_of(&budget, 1, 1);
        any.refit(&budget);
        for (one_in, narrow) in [(5, false), (20, false), (64, true)] {
            let AnyPart::SlidingLog(part) = &mut any else { panic!("it is wide") };
            for (number, state) in (1..).zip(part.states_mut()) {
                *state = log(60_000_000, if number % one_in == 0 { 9 } else { 3 }, 1);
            }
            let used = usages(&any);
            any.refit(&budget);
            assert_eq!(matches!(any, AnyPart::NarrowLog(_)), narrow, "one in {one_in}");
            assert_eq!((usages(&any), budget.taken()), (used, bytes(&any)), "one in {one_in}");
        }
    }

    #[test]
    fn a_few_busy_keys_have_wide_slots_until_many_idle_ones_come() {
        let budget = Budget::new(1 << 30);
        let mut any = AnyPart::new(Algorithm::SlidingLog);
        put::<NarrowLog>(&mut any, &budget, 1 << 32, log(60_000_000, 10, 2).refitted());
        any.refit(&budget);
        assert!(matches!(any, AnyPart::NarrowLog(_)), "costs are on the heap in any slot");
        put::<NarrowLog>(&mut any, &budget, 2 << 32, log(60_000_000, 10, 1).refitted());
        any.refit(&budget);
        for key in 3..=NARROW_FROM as u64 {
            any.refit(&budget);
            assert!(matches!(any, AnyPart::SlidingLog(_)), "wide with {key} keys");
            put(&mut any, &budget, key << 32, log(60_000_000, 1, 1));
        }
        any.refit(&budget);
        assert!(matches!(any, AnyPart::NarrowLog(_)));
    }

    #[test]
    fn a_spent_budget_changes_nothing() {
        let ample = Budget::new(1 << 30);
        let mut any = part_of(&ample, 1, 1);
        let (used, spent) = (usages(&any), Budget::new(1 << 10));
        any.refit(&spent);
        assert!(matches!(any, AnyPart::NarrowLog(_)) && spent.taken() == 0);
        assert_eq!(usages(&any), used);
    }

    #[test]
    fn an_empty_part_is_narrow_and_takes_nothing() {
        let budget = Budget::new(1 << 30);
        let mut any = AnyPart::SlidingLog(Part::default());
        any.refit(&budget);
        assert!(matches!(any, AnyPart::NarrowLog(_)));
        assert_eq!((bytes(&any), budget.taken()), (0, 0));
    }
}
