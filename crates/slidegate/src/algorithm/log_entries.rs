//! The entries of a `sliding-log`: stamps alone while every cost is 1, stamps with running totals after.

use std::collections::VecDeque;

/// Entries, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entries {
    /// Stamps of requests of cost 1, oldest first; equal stamps stand side by side.
    Units(VecDeque<u64>),
    /// Stamps, each once, with the total admitted up to and including it; `base` is the total before
    /// the first. Totals wrap: only their differences mean anything.
    Totals { base: u64, entries: VecDeque<(u64, u64)> },
}

impl Default for Entries {
    fn default() -> Self {
        Self::Units(VecDeque::new())
    }
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Units(stamps) => stamps.len(),
            Self::Totals { entries, .. } => entries.len(),
        }
    }

    pub(super) fn stamp(&self, index: usize) -> u64 {
        match self {
            Self::Units(stamps) => stamps[index],
            Self::Totals { entries, .. } => entries[index].0,
        }
    }

    pub(super) fn newest(&self) -> Option<u64> {
        self.len().checked_sub(1).map(|last| self.stamp(last))
    }

    /// Index of the first entry later than `stamp`.
    pub(super) fn first_after(&self, stamp: u64) -> usize {
        match self {
            Self::Units(stamps) => stamps.partition_point(|&other| other <= stamp),
            Self::Totals { entries, .. } => entries.partition_point(|&(other, _)| other <= stamp),
        }
    }

    /// The same, where few entries are expected to be earlier.
    #[inline]
    pub(super) fn first_after_few(&self, stamp: u64) -> usize {
        const FEW: usize = 4;
        let mut index = 0;
        while index < FEW.min(self.len()) {
            if self.stamp(index) > stamp {
                return index;
            }
            index += 1;
        }
        if index == self.len() { index } else { self.first_after(stamp) }
    }

    /// Total admitted before entry `index`.
    fn total_before(&self, index: usize) -> u64 {
        match (self, index) {
            (Self::Units(_), index) => index as u64,
            (Self::Totals { base, .. }, 0) => *base,
            (Self::Totals { entries, .. }, index) => entries[index - 1].1,
        }
    }

    /// Units in entries `from..to`.
    pub(super) fn units(&self, from: usize, to: usize) -> u64 {
        self.total_before(to).wrapping_sub(self.total_before(from))
    }

    /// The first entry at or after `from` such that `from..=it` hold at least `units`.
    pub(super) fn entry_reaching(&self, from: usize, units: u64) -> usize {
        match self {
            Self::Units(_) => from + usize::try_from(units).expect("no more units than entries") - 1,
            Self::Totals { entries, .. } => {
                let before = self.total_before(from);
                let (mut low, mut high) = (from, entries.len());
                while low < high {
                    let middle = low.midpoint(high);
                    if entries[middle].1.wrapping_sub(before) < units {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                low
            }
        }
    }

    pub(super) fn drop_front(&mut self, count: usize) {
        match self {
            Self::Units(stamps) => drop(stamps.drain(..count)),
            Self::Totals { base, entries } => {
                if let Some((_, total)) = entries.drain(..count).next_back() {
                    *base = total;
                }
                if entries.is_empty() {
                    *self = Self::default();
                }
            }
        }
    }

    pub(super) fn push(&mut self, stamp: u64, cost: u64) {
        if cost > 1 {
            self.keep_totals();
        }
        match self {
            Self::Units(stamps) => {
                make_room(stamps);
                stamps.push_back(stamp);
            }
            Self::Totals { base, entries } => match entries.back_mut() {
                Some((newest, total)) if *newest == stamp => *total = total.wrapping_add(cost),
                newest => {
                    let total = newest.map_or(*base, |(_, total)| *total).wrapping_add(cost);
                    make_room(entries);
                    entries.push_back((stamp, total));
                }
            },
        }
    }

    fn keep_totals(&mut self) {
        if let Self::Units(stamps) = self {
            let mut entries = VecDeque::with_capacity(stamps.len() + growth_of(stamps.len()));
            for (index, &stamp) in stamps.iter().enumerate() {
                let total = index as u64 + 1;
                match entries.back_mut() {
                    Some((newest, newest_total)) if *newest == stamp => *newest_total = total,
                    _ => entries.push_back((stamp, total)),
                }
            }
            *self = Self::Totals { base: 0, entries };
        }
    }

    /// Takes `units` away from the entries `index..` that hold them, oldest first.
    pub(super) fn lower(&mut self, index: usize, units: u64) {
        match self {
            Self::Units(stamps) => {
                let count = usize::try_from(units).expect("no more units than entries");
                drop(stamps.drain(index..index + count));
            }
            Self::Totals { base, entries } => {
                let before = if index == 0 { *base } else { entries[index - 1].1 };
                for (_, total) in entries.range_mut(index..) {
                    let held = total.wrapping_sub(before);
                    *total = before.wrapping_add(held.saturating_sub(units));
                }
                let emptied = entries.range(index..).take_while(|(_, total)| *total == before).count();
                drop(entries.drain(index..index + emptied));
                if entries.is_empty() {
                    *self = Self::default();
                }
            }
        }
    }

    /// By how many bytes a push of `cost` may make it grow, at most.
    pub(super) fn growth_bytes_max(&self, cost: u64) -> usize {
        match self {
            Self::Units(stamps) if cost == 1 => growth(stamps) * size_of::<u64>(),
            // Costs take twice the room of stamps alone, and both are there while one becomes the other.
            Self::Units(stamps) => (stamps.len() + growth_of(stamps.len())) * size_of::<(u64, u64)>(),
            Self::Totals { entries, .. } => growth(entries) * size_of::<(u64, u64)>(),
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Units(stamps) => stamps.capacity() * size_of::<u64>(),
            Self::Totals { entries, .. } => entries.capacity() * size_of::<(u64, u64)>(),
        }
    }
}

/// By how many entries one more makes it grow.
fn growth<T>(entries: &VecDeque<T>) -> usize {
    if entries.len() == entries.capacity() { growth_of(entries.len()) } else { 0 }
}

fn growth_of(len: usize) -> usize {
    (len / 4).max(4)
}

/// Grows by a quarter instead of doubling, and gives back what a past burst took: sizes are what users
/// plan memory with.
fn make_room<T>(entries: &mut VecDeque<T>) {
    let len = entries.len();
    if growth(entries) > 0 {
        entries.reserve_exact(growth(entries));
    } else if entries.capacity() > 16 && len < entries.capacity() / 4 {
        entries.shrink_to(len + len / 4 + 4);
    }
}
