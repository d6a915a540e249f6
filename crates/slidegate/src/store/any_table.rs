//! A table of whichever algorithm.

use super::table::Table;
use crate::algorithm::{CompactLog, FixedWindow, Gcra, SlidingBuckets, SlidingCounter, SlidingLog, Window};
use crate::rule::Algorithm;

/// A table per algorithm: states stand in place, each in as many bytes as its algorithm needs.
#[derive(Debug)]
pub(super) enum AnyTable {
    SlidingLog(Table<SlidingLog>),
    CompactLog(Table<CompactLog>),
    SlidingBuckets(Table<SlidingBuckets>),
    SlidingCounter(Table<SlidingCounter>),
    FixedWindow(Table<FixedWindow>),
    Gcra(Table<Gcra>),
}

/// An algorithm whose states have a table.
pub(super) trait Stored: Window {
    /// The table, if it is of this algorithm.
    fn table(any: &mut AnyTable) -> Option<&mut Table<Self>>;
}

macro_rules! stored {
    ($($algorithm:ident)+) => {$(
        impl Stored for $algorithm {
            #[inline]
            fn table(any: &mut AnyTable) -> Option<&mut Table<Self>> {
                if let AnyTable::$algorithm(table) = any { Some(table) } else { None }
            }
        }
    )+};
}

stored!(SlidingLog CompactLog SlidingBuckets SlidingCounter FixedWindow Gcra);

/// Runs the same expression on the table of whichever algorithm.
macro_rules! with_table {
    ($any:expr, $table:ident => $result:expr) => {
        match $any {
            AnyTable::SlidingLog($table) => $result,
            AnyTable::CompactLog($table) => $result,
            AnyTable::SlidingBuckets($table) => $result,
            AnyTable::SlidingCounter($table) => $result,
            AnyTable::FixedWindow($table) => $result,
            AnyTable::Gcra($table) => $result,
        }
    };
}

/// Runs the same expression on a table and on what a state of its algorithm keeps, `None` if the state is
/// of another algorithm.
macro_rules! with_table_and_kept {
    ($any:expr, $kept:expr, $table:ident, $state:ident => $result:expr) => {
        match ($any, $kept) {
            (AnyTable::SlidingLog($table), Kept::SlidingLog($state)) => Some($result),
            (AnyTable::CompactLog($table), Kept::CompactLog($state)) => Some($result),
            (AnyTable::SlidingBuckets($table), Kept::SlidingBuckets($state)) => Some($result),
            (AnyTable::SlidingCounter($table), Kept::SlidingCounter($state)) => Some($result),
            (AnyTable::FixedWindow($table), Kept::FixedWindow($state)) => Some($result),
            (AnyTable::Gcra($table), Kept::Gcra($state)) => Some($result),
            _ => None,
        }
    };
}

pub(super) use {with_table, with_table_and_kept};

impl AnyTable {
    /// An empty one.
    pub(super) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::SlidingLog => Self::SlidingLog(Table::default()),
            Algorithm::CompactLog(_) => Self::CompactLog(Table::default()),
            Algorithm::SlidingBuckets(..) => Self::SlidingBuckets(Table::default()),
            Algorithm::SlidingCounter => Self::SlidingCounter(Table::default()),
            Algorithm::FixedWindow => Self::FixedWindow(Table::default()),
            Algorithm::Gcra => Self::Gcra(Table::default()),
        }
    }
}
