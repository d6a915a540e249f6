//! A part behaves like a map, and keeps its order.

use std::collections::BTreeMap;

use super::*;
use crate::algorithm::FixedWindow;
use crate::rule::{Algorithm, Decimal, Limit};
use crate::testing::Rng;

fn limit() -> Limit {
    Limit::new("1000000/1s".parse().unwrap(), Decimal::ZERO, Algorithm::FixedWindow)
}

fn state(units: u64) -> FixedWindow {
    let mut state = FixedWindow::default();
    state.charge(&limit(), 1, units);
    state
}

fn units(state: &FixedWindow) -> u64 {
    state.usage(&limit(), 1).used
}

/// The invariants of a part: fingerprints ascend, each is at or behind its home, with no gap in between.
fn assert_ordered(table: &Part<FixedWindow>) {
    let mut last = 0;
    for (index, slot) in table.slots.iter().enumerate().filter(|(_, slot)| slot.fingerprint != 0) {
        assert!(slot.fingerprint > last, "fingerprints ascend");
        last = slot.fingerprint;
        let home = table.home(slot.fingerprint);
        assert!(home <= index, "no key is before its home");
        assert!(table.slots[home..index].iter().all(|slot| slot.fingerprint != 0), "no gap on the way");
    }
    assert_eq!(table.iter().count(), table.len());
}

/// Small numbers as fingerprints crowd the first home; spread ones do not.
#[test]
fn a_part_behaves_like_a_map() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let spread = if seed % 2 == 0 {
            1
        } else if seed % 4 == 3 {
            u64::MAX / 2_400
        } else {
            u64::MAX / 300
        };
        let (mut table, mut map) = (Part::of_common_bits(if seed % 4 == 3 { 3 } else { 0 }), BTreeMap::new());
        for step in 0..2_000 {
            let fingerprint = rng.between(1, 300) * spread;
            match rng.below(8) {
                0..4 => {
                    if let SlotIndex::Occupied(index) = table.find(fingerprint) {
                        *table.state_at(index) = state(step + 1);
                    } else if table.insert(fingerprint, state(step + 1)).is_err() {
                        let homes = table.homes_next();
                        table.rebuild(homes, |_| false, |_| panic!("nothing is gone"));
                        table.insert(fingerprint, state(step + 1)).unwrap();
                    }
                    map.insert(fingerprint, step + 1);
                }
                4..6 => {
                    let removed = table.remove(fingerprint).as_ref().map(units);
                    assert_eq!(removed, map.remove(&fingerprint), "seed {seed}");
                }
                6 => {
                    let odd = |state: &FixedWindow| units(state) % 16 == 1;
                    table.sweep(
                        10,
                        |_, state| odd(state),
                        |fingerprint, state| {
                            assert_eq!(map.remove(&fingerprint), Some(units(&state)), "seed {seed}");
                        },
                    );
                    table.shrink();
                }
                _ => assert_eq!(table.get(fingerprint).map(units), map.get(&fingerprint).copied()),
            }
            assert_ordered(&table);
        }
        let all: Vec<_> = table.iter().map(|(fingerprint, state)| (fingerprint, units(state))).collect();
        assert_eq!(all, map.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_sweep_reaches_the_end_and_the_table_shrinks_to_nothing() {
    let mut table = Part::default();
    let mut rng = Rng::new(7);
    while table.len() < 1_000 {
        let fingerprint = rng.below(u64::MAX) | 1;
        if table.get(fingerprint).is_none() && table.insert(fingerprint, state(1)).is_err() {
            let homes = table.homes_next();
            table.rebuild(homes, |_| false, |_| panic!("nothing is gone"));
        }
    }
    assert!(table.slots.len() < 1_900, "{}", table.slots.len());
    let mut dropped = 0;
    while !table.sweep(64, |_, _| true, |_, _| dropped += 1) {}
    while !table.sweep(64, |_, _| true, |_, _| dropped += 1) {}
    assert_eq!((dropped, table.len(), table.homes_less()), (1_000, 0, Some(0)));
    table.shrink();
    assert_eq!((table.bytes(), table.get(5)), (0, None));
}

#[test]
fn rebuilding_drops_states_that_are_gone() {
    let mut table = Part::default();
    table.rebuild(64, |_| false, |_| {});
    for fingerprint in 1..=40 {
        table.insert(fingerprint << 58, state(fingerprint)).unwrap();
    }
    let mut dropped = Vec::new();
    table.rebuild(64, |state| units(state) > 10, |state| dropped.push(units(&state)));
    assert_eq!((table.len(), dropped), (10, (11..=40).collect()));
    assert_ordered(&table);
}

/// A smaller array may have no room for several keys behind its last home: it grows until it has.
#[test]
fn keys_that_crowd_the_last_home_are_all_kept() {
    let mut table = Part::of_common_bits(0);
    let crowded = |key: u64| u64::MAX - (key << 50);
    for key in 0..200 {
        table.put(crowded(key), state(key + 1));
        assert_ordered(&table);
    }
    table.shrink();
    assert_ordered(&table);
    for key in 0..200 {
        assert_eq!(table.get(crowded(key)).map(units), Some(key + 1));
    }
}
