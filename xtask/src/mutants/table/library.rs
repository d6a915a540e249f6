//! The bugs that are planted: every class in every algorithm, and in the store that they share.

use crate::mutants::mutant::Class::{ChargeOnDeny, LostRefund, NewestForOldest, OffByOne, RoundingToMs};
use crate::mutants::mutant::Mutant;

/// `in FILE { CLASS NAME: ORIGINAL => REPLACEMENT; ... }`, the two texts one above the other.
macro_rules! mutants {
    ($(in $file:literal { $($class:ident $name:literal: $original:literal => $replacement:expr;)+ })+) => {
        &[$($(Mutant {
            name: $name,
            class: $class,
            file: $file,
            original: $original,
            replacement: $replacement,
        },)+)+]
    };
}

/// Charges what one algorithm refused when it was asked alone, which is by far the most common admission. It
/// does so after it has decided, so the answer itself is right.
macro_rules! charging_refused {
    ($algorithm:literal) => {
        concat!(
            "Err(ruling) => { if std::any::type_name::<S>().contains(\"::",
            $algorithm,
            "\") { if let Some(state) = S::part_in(table.part_mut(hit.fingerprint)).and_then(|part| ",
            "part.get_mut(hit.fingerprint)) { state.charge(hit.limit, hit.now_us, hit.cost); } }",
        )
    };
}

/// Charges, of an admission over several keys that was refused, what is wanted of it.
macro_rules! charging_refused_of_several {
    ($wanted:literal) => {
        concat!(
            "if !decision.allowed() { for index in 0..verdicts.len() { if ",
            $wanted,
            " { if let Ok(prepared) = locked.prepare(self.room(), |other| other == index) { ",
            "if let Some(prepared) = &prepared[index] { locked.charge(self.room(), index, now_us, prepared); } } } }",
        )
    };
}

pub(super) const MUTANTS: &[Mutant] = mutants! {
    in "crates/slidegate/src/algorithm/log_block.rs" {
        OffByOne "sliding-log/a-stamp-at-the-far-end-counts":
            "self.first_where(0, |block, index| block.stamp(index) > stamp)"
            => "self.first_where(0, |block, index| block.stamp(index) >= stamp)";
        OffByOne "sliding-log/the-oldest-at-the-far-end-counts":
            "if self.words[self.word_index(header, index)] > stamp {"
            => "if self.words[self.word_index(header, index)] >= stamp {";
        OffByOne "sliding-log/totals-lose-their-base":
            "self.words[0] = self.total_before(count);"
            => "";
    }
    in "crates/slidegate/src/algorithm/log_block.rs" {
        OffByOne "sliding-log/a-fast-admission-on-the-heap-is-over":
            "|| header.len as u64 > most"
            => "|| header.len as u64 > most + 1";
        OffByOne "sliding-log/a-fast-admission-on-the-heap-counts-the-far-end":
            "self.words[self.word_index(header, dropped)] <= gone"
            => "self.words[self.word_index(header, dropped)] < gone";
    }
    in "crates/slidegate/src/algorithm/log_entries.rs" {
        OffByOne "sliding-log/a-fast-admission-is-over":
            "if live >= PLACES || live as u64 >= units"
            => "if live >= PLACES || live as u64 > units";
        OffByOne "sliding-log/a-fast-admission-counts-the-far-end":
            "+ since_newest_us >= window_us;"
            => "+ since_newest_us > window_us;";
        OffByOne "sliding-log/a-stamp-in-place-at-the-far-end-counts":
            "low.age_at(newest) >= later_us"
            => "low.age_at(newest) > later_us";
        OffByOne "sliding-log/stamps-too-far-apart-stay-in-place":
            "(index > 0 && span_us > u64::from(u32::MAX))"
            => "(index > 0 && span_us > u64::from(u32::MAX) * 2)";
        OffByOne "sliding-log/a-wider-slot-loses-the-oldest":
            "for (index, place) in lows[..len].iter_mut().enumerate() {\n            *place = Low::of(self.stamp(index));"
            => "for (index, place) in lows[..len].iter_mut().enumerate() {\n            *place = Low::of(self.stamp(len - 1 - index / 2));";
        RoundingToMs "sliding-log/stamps-in-ms":
            "pub(super) fn push(&mut self, stamp: u64, cost: u64) {"
            => "pub(super) fn push(&mut self, stamp: u64, cost: u64) { let stamp = stamp / 1_000 * 1_000;";
    }
    in "crates/slidegate/src/algorithm/sliding_log.rs" {
        OffByOne "sliding-log/a-stamp-leaves-early":
            "map_or(0, |gone| self.entries.first_after(gone))"
            => "map_or(0, |gone| self.entries.first_after(gone + 1))";
        NewestForOldest "sliding-log/waits-for-the-newest":
            "self.entries.entry_reaching(live, missing)"
            => "self.entries.len() - 1";
        LostRefund "sliding-log/refund-forgotten":
            "self.entries.lower(from, given);"
            => "";
    }
    in "crates/slidegate/src/algorithm/compact_log.rs" {
        OffByOne "compact-log/a-stamp-at-the-far-end-counts":
            "entry.stamp(self.newest) <= stamp"
            => "entry.stamp(self.newest) < stamp";
        OffByOne "compact-log/a-stamp-leaves-early":
            "gone.map_or(0, |gone| self.first_after(gone))"
            => "gone.map_or(0, |gone| self.first_after(gone + 1))";
        NewestForOldest "compact-log/waits-for-the-newest":
            "self.leaves_us(limit, live, missing)"
            => "self.stamp(self.entries.len() - 1) + limit.window_us()";
        NewestForOldest "compact-log/merged-bears-the-older-stamp":
            "Entry::new(entry.stamp(self.newest), units, true)"
            => "Entry::new(group.stamp(self.newest), units, true)";
        RoundingToMs "compact-log/stamps-in-ms":
            "let stamp = self.newest.max(now_us);"
            => "let stamp = self.newest.max(now_us / 1_000 * 1_000);";
        LostRefund "compact-log/refund-forgotten":
            "self.lower(index, given);"
            => "";
    }
    in "crates/slidegate/src/algorithm/sliding_buckets.rs" {
        OffByOne "sliding-buckets/the-edge-counts-too-long":
            "(now_us + 1).saturating_sub(window_us)"
            => "now_us.saturating_sub(window_us)";
        OffByOne "sliding-buckets/the-edge-leaves-early":
            "Edge::Full => end_us - 1 + window_us"
            => "Edge::Full => end_us - 2 + window_us";
        OffByOne "sliding-buckets/the-last-unit-is-refused":
            "usage.used + cost <= limit.units()"
            => "usage.used + cost < limit.units()";
        NewestForOldest "sliding-buckets/waits-for-the-newest":
            "let end_us = (number + 1) * bucket_us;"
            => "let number = self.newest; let end_us = (number + 1) * bucket_us;";
        RoundingToMs "sliding-buckets/waits-in-ms":
            "Edge::Full => end_us - 1 + window_us,"
            => "Edge::Full => (end_us - 1 + window_us) / 1_000 * 1_000,";
        LostRefund "sliding-buckets/refund-forgotten":
            "self.lower(number, given);"
            => "";
    }
    in "crates/slidegate/src/algorithm/sliding_counter.rs" {
        OffByOne "sliding-counter/a-full-estimate-is-refused":
            "product(self.previous, overlap_us) <= product(room, window_us)"
            => "product(self.previous, overlap_us) < product(room, window_us)";
        OffByOne "sliding-counter/a-fast-admission-is-over":
            "if used > limit.units() || !self.counts.add(cost)"
            => "if used > limit.units() + 1 || !self.counts.add(cost)";
        OffByOne "sliding-counter/a-fast-admission-stays-in-its-window":
            "if elapsed_us >= window_us {"
            => "if elapsed_us > window_us {";
        NewestForOldest "sliding-counter/refunds-the-newest":
            "Some(1)) => &mut counts.previous"
            => "Some(1)) => &mut counts.current";
        RoundingToMs "sliding-counter/elapsed-in-ms":
            "now_us.saturating_sub(number * window_us)"
            => "now_us.saturating_sub(number * window_us) / 1_000 * 1_000";
        LostRefund "sliding-counter/refund-forgotten":
            "*count -= given;"
            => "";
    }
    in "crates/slidegate/src/algorithm/fixed_window.rs" {
        OffByOne "fixed-window/the-last-unit-is-refused":
            "count + cost <= limit.units()"
            => "count + cost < limit.units()";
        OffByOne "fixed-window/a-fast-admission-stays-in-its-window":
            "if elapsed_us >= window_us || used > limit.units()"
            => "if elapsed_us > window_us || used > limit.units()";
        NewestForOldest "fixed-window/refunds-the-newest":
            "Some(self.rolled(limit, now_us).number) == place.position.at()"
            => "Some(self.rolled(limit, now_us).number) >= place.position.at()";
        RoundingToMs "fixed-window/waits-in-ms":
            "if passes { 0 } else { end_us(limit, number) - now_us }"
            => "if passes { 0 } else { (end_us(limit, number) - now_us).next_multiple_of(1_000) }";
        LostRefund "fixed-window/refund-forgotten":
            "self.credit(limit, now_us, units)"
            => "units.min(self.count)";
    }
    in "crates/slidegate/src/algorithm/gcra.rs" {
        OffByOne "gcra/a-full-line-is-refused":
            "let room = product(limit.units() - cost, limit.window_us());"
            => "let room = product(limit.units() - cost, limit.window_us()).saturating_sub(1);";
        OffByOne "gcra/a-fast-admission-is-over":
            "if line.drained_per_window() != units || backlog > line_max"
            => "if line.drained_per_window() != units || backlog > line_max + 1";
        NewestForOldest "gcra/refunds-the-newest":
            ".saturating_sub(product(self.drained_per_window, elapsed_us))"
            => ".max(self.backlog_at(now_us))";
        RoundingToMs "gcra/time-in-ms":
            "self.as_of_us = self.as_of_us.max(now_us);"
            => "self.as_of_us = self.as_of_us.max(now_us / 1_000 * 1_000);";
        LostRefund "gcra/refund-forgotten":
            "self.credit(&place.limit, now_us, units.min(whole))"
            => "units.min(whole)";
    }
    in "crates/slidegate/src/store/memory/single.rs" {
        ChargeOnDeny "sliding-log/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("Log<");
        ChargeOnDeny "compact-log/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("CompactLog");
        ChargeOnDeny "sliding-buckets/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("SlidingBuckets");
        ChargeOnDeny "sliding-counter/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("SlidingCounter");
        ChargeOnDeny "fixed-window/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("FixedWindow");
        ChargeOnDeny "gcra/charges-what-it-refused":
            "Err(ruling) => {"
            => charging_refused!("Gcra");
    }
    in "crates/slidegate/src/store/memory/table/limit_table.rs" {
        OffByOne "store/sweep-forgets-a-live-key":
            "let gone = |_: u64, state: &_| Window::ends_us(state, limit) <= room.noted_us;"
            => "let gone = |_: u64, state: &_| Window::ends_us(state, limit) <= room.noted_us + 2_000_000;";
        OffByOne "store/one-of-several-limits-ends-the-key":
            "part.get(fingerprint).is_none_or(|state| state.ends_us(&self.limit) <= noted_us)"
            => "part.get(fingerprint).is_none_or(|_| noted_us > 0)";
        ChargeOnDeny "store/refused-bytes-stay-taken":
            "budget.give(set_aside);\n        if fresh {"
            => "if fresh {";
        ChargeOnDeny "store/refused-key-stays":
            "with_part!(self.table.part_mut(fingerprint), part => drop(part.remove(fingerprint)));"
            => "";
        LostRefund "store/evicted-receipts-stay-good":
            "self.void_receipts.record(budget, fingerprint, order, ends_us);"
            => "let _ = (budget, order, ends_us);";
    }
    in "crates/slidegate/src/store/memory/table/part.rs" {
        OffByOne "store/removed-without-closing-the-gap":
            "self.slots[index..=index + moved].rotate_left(1);"
            => "let _ = moved;";
    }
    in "crates/slidegate/src/store/memory/table/layout.rs" {
        ChargeOnDeny "store/keys-of-an-admission-make-room-for-each-other":
            "self.tables.len() == 1 && room.spared.is_empty()"
            => "self.tables.len() == 1";
    }
    in "crates/slidegate/src/store/memory/store.rs" {
        ChargeOnDeny "store/denied-admission-charged":
            "if !decision.allowed() {"
            => charging_refused_of_several!("true");
        ChargeOnDeny "store/denied-admission-charged-in-part":
            "if !decision.allowed() {"
            => charging_refused_of_several!("verdicts[index].allowed()");
        ChargeOnDeny "store/shadow-charged-on-deny":
            "locked.prepare(room, |index| verdicts[index].allowed())"
            => "locked.prepare(room, |_| true)";
    }
    in "crates/slidegate/src/store/memory/refunds.rs" {
        LostRefund "store/only-the-first-charge-is-refunded":
            ".map(|charge| store.give_back(now_us, charge, charge.cost()))"
            => ".take(1).map(|charge| store.give_back(now_us, charge, charge.cost()))";
        LostRefund "store/settled-below-cost-forgotten":
            "store.give_back(now_us, charge, cost - actual)"
            => "cost - actual";
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::mutant::Class;

    const CLASSES: [Class; 5] = [OffByOne, NewestForOldest, ChargeOnDeny, RoundingToMs, LostRefund];

    #[test]
    fn every_class_is_planted_in_every_algorithm() {
        for algorithm in
            ["sliding-log", "compact-log", "sliding-buckets", "sliding-counter", "fixed-window", "gcra"]
        {
            for class in CLASSES {
                let mut planted = MUTANTS.iter().filter(|mutant| mutant.name.starts_with(algorithm));
                assert!(planted.any(|mutant| mutant.class == class), "{algorithm}: {class}");
            }
        }
    }
}
