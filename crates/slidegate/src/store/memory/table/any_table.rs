//! A table of any algorithm.
//!
//! A `sliding-log` table has narrow or wide slots. It starts narrow, and after every complete sweep a sample of its
//! keys decides: with wide slots a key that is seen ten times in a window needs one cache line; with narrow slots a
//! million keys that are seen once take two thirds of the memory. The two thresholds differ by a factor of eight, as a
//! hysteresis.

use super::prefetch::PrefetchAddress;
use super::split_table::Table;
use crate::algorithm::{
    CompactLog, FixedWindow, Gcra, Log, NarrowLog, SlidingBuckets, SlidingCounter, SlidingLog,
};
use crate::rule::Algorithm;
use crate::store::memory::budget::Budget;

/// Most keys in the sample.
const SAMPLED_MAX: usize = 256;
/// A wide table of fewer keys stays wide: there is little to save.
const NARROW_KEYS_MIN: usize = 16;
/// Slots become wide when one key in this many wants a wide slot.
const WIDE_FROM: usize = 4;
/// Slots become narrow again when at most one key in this many wants a wide slot.
const NARROW_FROM: usize = 32;

/// A table per algorithm, so that a slot is as large as the algorithm's state.
#[derive(Debug)]
pub(in crate::store::memory) enum AnyTable {
    NarrowLog(Table<NarrowLog>),
    SlidingLog(Table<SlidingLog>),
    CompactLog(Table<CompactLog>),
    SlidingBuckets(Table<SlidingBuckets>),
    SlidingCounter(Table<SlidingCounter>),
    FixedWindow(Table<FixedWindow>),
    Gcra(Table<Gcra>),
}

/// Runs the same expression on the table of any algorithm.
macro_rules! with_table {
    ($any:expr, $table:ident => $result:expr) => {
        match $any {
            AnyTable::NarrowLog($table) => $result,
            AnyTable::SlidingLog($table) => $result,
            AnyTable::CompactLog($table) => $result,
            AnyTable::SlidingBuckets($table) => $result,
            AnyTable::SlidingCounter($table) => $result,
            AnyTable::FixedWindow($table) => $result,
            AnyTable::Gcra($table) => $result,
        }
    };
}

/// Runs the same expression on a table and a state of its algorithm; `None` if the state is of another
/// algorithm.
macro_rules! with_table_and_window {
    ($any:expr, $any_window:expr, $table:ident, $state:ident => $result:expr) => {
        match ($any, $any_window) {
            (AnyTable::NarrowLog($table), AnyWindow::SlidingLog(state)) => {
                let $state = state.refitted();
                Some($result)
            }
            (AnyTable::SlidingLog($table), AnyWindow::SlidingLog($state)) => Some($result),
            (AnyTable::CompactLog($table), AnyWindow::CompactLog($state)) => Some($result),
            (AnyTable::SlidingBuckets($table), AnyWindow::SlidingBuckets($state)) => Some($result),
            (AnyTable::SlidingCounter($table), AnyWindow::SlidingCounter($state)) => Some($result),
            (AnyTable::FixedWindow($table), AnyWindow::FixedWindow($state)) => Some($result),
            (AnyTable::Gcra($table), AnyWindow::Gcra($state)) => Some($result),
            _ => None,
        }
    };
}

pub(in crate::store::memory) use {with_table, with_table_and_window};

impl AnyTable {
    /// An empty table.
    pub(in crate::store::memory) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingLog => Self::NarrowLog(Table::default()),
            Algorithm::CompactLog(_) => Self::CompactLog(Table::default()),
            Algorithm::SlidingBuckets(..) => Self::SlidingBuckets(Table::default()),
            Algorithm::SlidingCounter => Self::SlidingCounter(Table::default()),
            Algorithm::FixedWindow => Self::FixedWindow(Table::default()),
            Algorithm::Gcra => Self::Gcra(Table::default()),
        }
    }

    /// The address of the first slot in which a key may be.
    #[inline]
    pub(in crate::store::memory) fn home_address(&self, fingerprint: u64) -> PrefetchAddress {
        with_table!(self, table => table.part(fingerprint).home_address(fingerprint))
    }

    /// Changes the slot width to suit most keys, if the budget has room for both arrays meanwhile.
    pub(in crate::store::memory) fn refit(&mut self, budget: &Budget) {
        let refitted = match self {
            Self::NarrowLog(table) => {
                let (keys, wanting) = wanting_wide_slots(table);
                let suits = wanting * WIDE_FROM >= keys && wanting > 0;
                suits.then(|| table.converted(budget, Log::refitted)).flatten().map(Self::SlidingLog)
            }
            Self::SlidingLog(table) if table.len() == 0 => Some(Self::NarrowLog(Table::default())),
            Self::SlidingLog(table) => {
                let (keys, wanting) = wanting_wide_slots(table);
                let suits = wanting * NARROW_FROM <= keys && keys >= NARROW_KEYS_MIN;
                suits.then(|| table.converted(budget, Log::refitted)).flatten().map(Self::NarrowLog)
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
fn wanting_wide_slots<const PLACES: usize>(table: &Table<Log<PLACES>>) -> (usize, usize) {
    let sample = table.iter().take(SAMPLED_MAX);
    sample.fold((0, 0), |(keys, wanting), (_, log)| (keys + 1, wanting + usize::from(log.wants_wide_slot())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Window;
    use crate::rule::{Decimal, Limit};
    use crate::store::memory::table::room::rounded;

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

    /// A table in which one key in `one_in` made ten requests of that cost, and the others one.
    fn table_of(budget: &Budget, one_in: u64, cost: u64) -> AnyTable {
        let mut any = AnyTable::new(Algorithm::SlidingLog);
        for key in 1..=KEYS {
            let state: NarrowLog = log(60_000_000, if key % one_in == 0 { 10 } else { 1 }, cost).refitted();
            let AnyTable::NarrowLog(table) = &mut any else { panic!("it begins narrow") };
            budget.take_anyway(rounded(state.heap_bytes()));
            table.split_if_large(budget);
            table.put(budget, key.wrapping_mul(0x9e37_79b9_7f4a_7c15), state);
        }
        any
    }

    fn bytes(any: &AnyTable) -> u64 {
        let heap = with_table!(any, table => table.iter().map(|(_, state)| rounded(state.heap_bytes())).sum::<usize>());
        (with_table!(any, table => table.bytes()) + heap) as u64
    }

    fn usages(any: &AnyTable) -> Vec<(u64, u64)> {
        with_table!(any, table => {
            table.iter().map(|(key, state)| (key, state.usage(&limit(), 60_000_000).used)).collect()
        })
    }

    #[test]
    fn slots_are_as_wide_as_most_keys_need() {
        for (one_in, cost, wide) in
            [(1, 1, true), (3, 1, true), (10, 1, false), (5_000, 1, false), (1, 2, false)]
        {
            let budget = Budget::new(1 << 30);
            let mut any = table_of(&budget, one_in, cost);
            let (used, before) = (usages(&any), bytes(&any));
            any.refit(&budget);
            let is_wide = matches!(any, AnyTable::SlidingLog(_));
            assert_eq!(is_wide, wide, "one in {one_in} with ten of cost {cost}");
            assert_eq!(usages(&any), used);
            assert_eq!(budget.taken(), bytes(&any), "one in {one_in}");
            assert!(!wide || bytes(&any) < before * 5 / 4, "{} after {before}", bytes(&any));
        }
    }

    #[test]
    fn wide_slots_become_narrow_again_when_few_need_them() {
        let budget = Budget::new(1 << 30);
        let mut any = table_of(&budget, 1, 1);
        any.refit(&budget);
        for (one_in, narrow) in [(5, false), (20, false), (64, true)] {
            let AnyTable::SlidingLog(table) = &mut any else { panic!("it is wide") };
            for (number, state) in (1..).zip(table.states_mut()) {
                *state = log(60_000_000, if number % one_in == 0 { 9 } else { 3 }, 1);
            }
            let used = usages(&any);
            any.refit(&budget);
            assert_eq!(matches!(any, AnyTable::NarrowLog(_)), narrow, "one in {one_in}");
            assert_eq!((usages(&any), budget.taken()), (used, bytes(&any)), "one in {one_in}");
        }
    }

    #[test]
    fn a_few_busy_keys_have_wide_slots_until_many_idle_ones_come() {
        let budget = Budget::new(1 << 30);
        let mut any = AnyTable::new(Algorithm::SlidingLog);
        let AnyTable::NarrowLog(table) = &mut any else { panic!("it begins narrow") };
        table.put(&budget, 1 << 32, log(60_000_000, 10, 2).refitted());
        any.refit(&budget);
        assert!(matches!(any, AnyTable::NarrowLog(_)), "costs are on the heap in any slot");
        let AnyTable::NarrowLog(table) = &mut any else { unreachable!("it is narrow") };
        table.put(&budget, 2 << 32, log(60_000_000, 10, 1).refitted());
        any.refit(&budget);
        for key in 3..=NARROW_FROM as u64 {
            any.refit(&budget);
            let AnyTable::SlidingLog(table) = &mut any else { panic!("wide with {key} keys") };
            table.put(&budget, key << 32, log(60_000_000, 1, 1));
        }
        any.refit(&budget);
        assert!(matches!(any, AnyTable::NarrowLog(_)));
    }

    #[test]
    fn a_spent_budget_changes_nothing() {
        let ample = Budget::new(1 << 30);
        let mut any = table_of(&ample, 1, 1);
        let (used, spent) = (usages(&any), Budget::new(1 << 10));
        any.refit(&spent);
        assert!(matches!(any, AnyTable::NarrowLog(_)) && spent.taken() == 0);
        assert_eq!(usages(&any), used);
    }

    #[test]
    fn an_empty_table_is_narrow_and_takes_nothing() {
        let budget = Budget::new(1 << 30);
        let mut any = AnyTable::SlidingLog(Table::default());
        any.refit(&budget);
        assert!(matches!(any, AnyTable::NarrowLog(_)));
        assert_eq!((bytes(&any), budget.taken()), (0, 0));
    }
}
