//! Coverage of the traces: which events happened to which algorithm.

use std::collections::BTreeMap;

use crate::rule::{Algorithm, Edge};

/// An event that the traces must produce for every algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it; the less obvious ones are explained")]
pub enum Event {
    Admitted,
    Denied,
    Peeked,
    Refunded,
    /// A refund or settlement of a spent or expired receipt.
    RefundedNothing,
    SettledForLess,
    SettledForMore,
    SettledAsCharged,
    Credited,
    Reset,
    /// A state was swept.
    Forgotten,
    /// A refund of a charge from before a reset.
    RefundedAfterReset,
    Inspected,
    LimitChanged,
    /// Another window or algorithm: a new state starts with the used units.
    GeometryChanged,
    /// Several charges in one admission.
    SeveralCharges,
    /// Charges on one state in one admission.
    Summed,
    /// The same microsecond as the step before.
    SameInstant,
    /// A later window than the step before.
    Rolled,
    /// More than two windows after the step before.
    Idle,
    /// Earlier than the step before.
    SetBack,
    /// Limit times window passes 64 bits.
    Wide,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Admitted,
        Self::Denied,
        Self::Peeked,
        Self::Refunded,
        Self::RefundedNothing,
        Self::SettledForLess,
        Self::SettledForMore,
        Self::SettledAsCharged,
        Self::Credited,
        Self::Reset,
        Self::Forgotten,
        Self::RefundedAfterReset,
        Self::Inspected,
        Self::LimitChanged,
        Self::GeometryChanged,
        Self::SeveralCharges,
        Self::Summed,
        Self::SameInstant,
        Self::Rolled,
        Self::Idle,
        Self::SetBack,
        Self::Wide,
    ];
}

/// Counts of events by algorithm and edge.
#[derive(Debug, Default)]
pub struct Coverage {
    cells: BTreeMap<(&'static str, &'static str, Event), u64>,
}

impl Coverage {
    /// Counts one event.
    pub fn count(&mut self, algorithm: Algorithm, event: Event) {
        let (name, edge) = cell(algorithm);
        *self.cells.entry((name, edge, event)).or_default() += 1;
    }

    /// Adds the counts of another coverage.
    pub fn add(&mut self, other: &Self) {
        for (&cell, count) in &other.cells {
            *self.cells.entry(cell).or_default() += count;
        }
    }

    /// How often the event happened.
    #[must_use]
    pub fn of(&self, algorithm: Algorithm, event: Event) -> u64 {
        let (name, edge) = cell(algorithm);
        self.cells.get(&(name, edge, event)).copied().unwrap_or(0)
    }

    /// Cells with fewer than `least` events, as text; empty if every case is covered.
    #[must_use]
    pub fn missing(&self, algorithms: &[Algorithm], least: u64) -> Vec<String> {
        self.missing_of(&Event::ALL, algorithms, least)
    }

    /// The same for some events: a store that never drops states cannot cover all.
    #[must_use]
    pub fn missing_of(&self, events: &[Event], algorithms: &[Algorithm], least: u64) -> Vec<String> {
        let cells =
            algorithms.iter().flat_map(|&algorithm| events.iter().map(move |&event| (algorithm, event)));
        let missing = cells.filter(|&(algorithm, event)| self.of(algorithm, event) < least);
        missing
            .map(|(algorithm, event)| format!("{algorithm}: {event:?} {}", self.of(algorithm, event)))
            .collect()
    }
}

fn cell(algorithm: Algorithm) -> (&'static str, &'static str) {
    let edge = if let Algorithm::SlidingBuckets(_, edge) = algorithm { edge } else { Edge::Full };
    (algorithm.name(), edge.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_cell_is_named() {
        let mut coverage = Coverage::default();
        for event in Event::ALL {
            coverage.count(Algorithm::Gcra, event);
        }
        assert_eq!(coverage.missing(&[Algorithm::Gcra], 1), Vec::<String>::new());
        assert_eq!(coverage.missing(&[Algorithm::Gcra], 2).len(), Event::ALL.len());
        let mut twice = Coverage::default();
        twice.add(&coverage);
        twice.add(&coverage);
        assert_eq!(twice.missing(&[Algorithm::Gcra], 2), Vec::<String>::new());
        assert!(coverage.missing(&[Algorithm::FixedWindow], 1)[0].starts_with("fixed-window: Admitted"));
    }
}
