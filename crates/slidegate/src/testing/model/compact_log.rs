//! Model of `compact-log`: a log that joins neighbours, at the later stamp, when it holds K entries.
//!
//! Judges `algorithm/compact_log.rs` and, in `slidegate-redis/scripts`, `compact-log.lua` and `fast-compact-log.lua`:
//! change all four.

use super::algorithm_model::AlgorithmModel;
use super::amount::Amount;
use super::limit_model::ModelPlace;
use crate::rule::{Algorithm, Limit};

/// The entries, oldest first, the newest stamp ever charged, and the newest that a credit has touched.
#[derive(Debug, Clone, Default)]
pub(super) struct CompactLog {
    entries: Vec<Entry>,
    newest_us: u128,
    credited_us: u128,
}

/// Units that leave together.
#[derive(Debug, Clone, Copy)]
struct Entry {
    stamp: u128,
    units: u128,
    merged: bool,
}

/// Whether a stamp lies in the window that ends at `at_us`.
fn is_live(limit: &Limit, stamp: u128, at_us: u128) -> bool {
    stamp + u128::from(limit.window_us()) > at_us
}

/// Joins neighbours, from the oldest on, as long as together they hold at most `together_max` units.
fn merge(entries: &[Entry], together_max: u128) -> Vec<Entry> {
    let mut groups: Vec<Entry> = Vec::new();
    for entry in entries {
        match groups.last_mut() {
            Some(group) if group.units + entry.units <= together_max => {
                *group = Entry { stamp: entry.stamp, units: group.units + entry.units, merged: true };
            }
            _ => groups.push(*entry),
        }
    }
    groups
}

impl AlgorithmModel for CompactLog {
    fn duplicate(&self) -> Box<dyn AlgorithmModel> {
        Box::new(self.clone())
    }

    fn remembers_us(&self, _limit: &Limit) -> u128 {
        self.newest_us
    }

    fn in_use(&self, limit: &Limit, at_us: u128) -> Amount {
        let live = self.entries.iter().filter(|entry| is_live(limit, entry.stamp, at_us));
        Amount::of_units(live.map(|entry| entry.units).sum())
    }

    fn charge(&mut self, limit: &Limit, at_us: u128, cost: u128) -> u128 {
        let Algorithm::CompactLog(entries_max) = limit.algorithm() else {
            unreachable!("the limit keeps this state, so it is a compact log")
        };
        let entries_max = usize::from(entries_max.get());
        self.newest_us = at_us;
        self.entries.retain(|entry| is_live(limit, entry.stamp, at_us));
        if let Some(last) = self.entries.last_mut().filter(|last| last.stamp == at_us) {
            last.units += cost;
            return at_us;
        }
        if self.entries.len() >= entries_max {
            let held: u128 = self.entries.iter().map(|entry| entry.units).sum();
            let most = (held + cost).max(limit.units().into());
            self.entries = merge(&self.entries, (2 * most).div_ceil(entries_max as u128 - 2));
        }
        self.entries.push(Entry { stamp: at_us, units: cost, merged: false });
        at_us
    }

    fn refund(&mut self, limit: &Limit, at_us: u128, place: &ModelPlace, units: u128) -> u128 {
        if !is_live(limit, place.at, at_us) {
            return 0;
        }
        let Some(entry) = self.entries.iter_mut().find(|entry| entry.stamp >= place.at) else {
            return 0;
        };
        // A credit may have taken the charge's units from a merged entry.
        let refundable = if entry.merged { place.at > self.credited_us } else { entry.stamp == place.at };
        if !refundable {
            return 0;
        }
        let given = units.min(entry.units);
        entry.units -= given;
        self.entries.retain(|entry| entry.units > 0);
        given
    }

    fn credit(&mut self, limit: &Limit, at_us: u128, units: u128) {
        let mut rest = units;
        for entry in self.entries.iter_mut().filter(|entry| is_live(limit, entry.stamp, at_us)) {
            let taken = rest.min(entry.units);
            entry.units -= taken;
            rest -= taken;
            if taken > 0 {
                self.credited_us = self.credited_us.max(entry.stamp);
            }
        }
        self.entries.retain(|entry| entry.units > 0);
    }

    fn change(&mut self, _limit: &Limit, _at_us: u128) {}
}

/// The instant from which the charge at `place` no longer counts, ignoring merges with later ones.
pub(super) fn expires_us(place: &ModelPlace) -> u128 {
    place.at + u128::from(place.limit.window_us())
}

#[cfg(test)]
mod tests {
    use super::super::limit_model::{LimitModel, ModelPlace};
    use super::super::samples::{SECOND_US, limit};
    use crate::rule::{Algorithm, Entries, Limit};

    fn four_entries(rate: &str) -> Limit {
        limit(rate, Algorithm::CompactLog(Entries::new(4).unwrap()))
    }

    /// Four charges of 1, 2, 1 and 3 units at 10, 20, 30 and 40 us, then `cost` at 50 us.
    fn five_charges(limit: &Limit, cost: u64) -> (LimitModel, Vec<ModelPlace>) {
        let mut model = LimitModel::new(*limit);
        let charges = [(10, 1), (20, 2), (30, 1), (40, 3), (50, cost)];
        let places = charges.iter().map(|&(at_us, cost)| model.charge(limit, at_us, cost)).collect();
        (model, places)
    }

    #[test]
    fn the_fifth_request_merges_neighbours_at_the_later_stamp() {
        // Together at most 2 * max(4, 7 + 1) / 2 = 8 units: all four entries become one of 7 at 40.
        let limit = four_entries("4/1s");
        let (model, _) = five_charges(&limit, 1);
        for (at_us, used) in [(39 + SECOND_US, 8), (40 + SECOND_US, 1), (50 + SECOND_US, 0)] {
            assert_eq!(model.usage(&limit, at_us).used, used);
        }
        // With 16 entries nothing is merged.
        let exact = Algorithm::CompactLog(Entries::new(16).unwrap());
        let exact = super::super::samples::limit("4/1s", exact);
        let (model, _) = five_charges(&exact, 1);
        for (at_us, used) in [(9, 8), (10, 7), (20, 5), (30, 4), (40, 1), (50, 0)] {
            assert_eq!(model.usage(&exact, at_us + SECOND_US).used, used);
        }
    }

    #[test]
    fn a_large_entry_stays_alone() {
        // At 70 us the six entries hold 44 units: together at most 2 * 45 / 4 = 23, rounded up, so the 30
        // stay alone and the five after them become one of 14 at 60 us.
        let limit = limit("40/1s", Algorithm::CompactLog(Entries::new(6).unwrap()));
        let mut model = LimitModel::new(limit);
        for (at_us, cost) in [(10, 30), (20, 2), (30, 1), (40, 9), (50, 1), (60, 1), (70, 1)] {
            model.charge(&limit, at_us, cost);
        }
        for (at_us, used) in [(9, 45), (10, 15), (20, 15), (30, 15), (40, 15), (50, 15), (60, 1), (70, 0)] {
            assert_eq!(model.usage(&limit, at_us + SECOND_US).used, used, "{at_us}");
        }
    }

    #[test]
    fn a_refund_finds_its_units_in_the_merged_entry() {
        let limit = four_entries("4/1s");
        let (mut model, places) = five_charges(&limit, 1);
        assert_eq!(model.refund(60, &places[1], 2), 2);
        assert_eq!(model.usage(&limit, 60).used, 6);
        assert_eq!(model.refund(10 + SECOND_US, &places[0], 1), 0, "expired by its own stamp");
        assert_eq!(model.refund(60, &places[4], 9), 1);
        assert_eq!(model.refund(60, &places[4], 9), 0, "the entry is gone");
        assert_eq!(model.charge(&limit, 45, 1).at, 50, "time still does not run backwards past it");
    }

    #[test]
    fn an_entry_that_was_never_merged_answers_for_its_own_stamp_only() {
        let limit = four_entries("4/1s");
        let mut model = LimitModel::new(limit);
        let first = model.charge(&limit, 10, 2);
        model.charge(&limit, 20, 3);
        assert_eq!(model.credit(&limit, 30, 3), 3, "the oldest first");
        assert_eq!(model.refund(30, &first, 2), 0, "its units were given back already");
        assert_eq!(model.usage(&limit, 30).used, 2);
    }

    #[test]
    fn a_clock_that_is_set_back_stands_still() {
        let limit = four_entries("4/1s");
        let (mut model, _) = five_charges(&limit, 1);
        assert_eq!(model.charge(&limit, 7, 1).at, 50);
        assert_eq!(model.usage(&limit, 7).reset_after_us, 43 + SECOND_US);
        assert_eq!(model.decide(&limit, 7, 2).retry_after_us, 33 + SECOND_US, "when the merged 7 leave");
    }
}
