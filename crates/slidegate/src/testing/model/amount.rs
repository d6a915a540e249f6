//! Exact amounts of use, and the search for the first instant at which something holds.

/// An exact fraction: `parts / per_unit` units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    parts: u128,
    per_unit: u128,
}

impl Amount {
    /// `parts` of which `per_unit` make one unit.
    pub(super) fn of_parts(parts: u128, per_unit: u128) -> Self {
        Self { parts, per_unit }
    }

    /// Whole units.
    pub(super) fn of_units(units: u128) -> Self {
        Self { parts: units, per_unit: 1 }
    }

    /// Units, rounded up.
    pub(super) fn rounded_up(self) -> u64 {
        u64::try_from(self.parts.div_ceil(self.per_unit)).expect("what is used stays near USED_MAX at most")
    }

    /// Whether `cost` more units stay within `limit` units, exactly.
    pub(super) fn has_room_for(self, cost: u64, limit: u64) -> bool {
        self.parts + u128::from(cost) * self.per_unit <= u128::from(limit) * self.per_unit
    }
}

/// Microseconds from `now_us` to the first instant at which `holds` is true. `holds` must be monotonic and become
/// true eventually.
///
/// A backlog of `gcra` may last longer than u64 microseconds: then the result is `u64::MAX`.
pub(super) fn wait_us(now_us: u64, holds: impl Fn(u128) -> bool) -> u64 {
    let now_us = u128::from(now_us);
    if holds(now_us) {
        return 0;
    }
    let mut holds_after_us: u128 = 1;
    while !holds(now_us + holds_after_us) {
        holds_after_us *= 2;
        assert!(holds_after_us < 1 << 110, "every charge expires");
    }
    let mut fails_after_us = holds_after_us / 2;
    while holds_after_us - fails_after_us > 1 {
        let middle_us = fails_after_us.midpoint(holds_after_us);
        if holds(now_us + middle_us) {
            holds_after_us = middle_us;
        } else {
            fails_after_us = middle_us;
        }
    }
    u64::try_from(holds_after_us).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_counts_exactly_and_shows_rounded_up() {
        let four_and_a_half = Amount::of_parts(9, 2);
        assert_eq!(four_and_a_half.rounded_up(), 5);
        assert!(!four_and_a_half.has_room_for(1, 5));
        assert!(four_and_a_half.has_room_for(1, 6));
        assert!(Amount::of_units(4).has_room_for(1, 5));
        assert_eq!(Amount::of_parts(0, 7).rounded_up(), 0);
    }

    #[test]
    fn the_search_finds_every_instant_to_the_microsecond() {
        for wanted_us in 0..300 {
            assert_eq!(wait_us(1_000, |at_us| at_us >= 1_000 + wanted_us), u64::try_from(wanted_us).unwrap());
        }
        assert_eq!(wait_us(5, |at_us| at_us >= 3), 0, "an instant that has passed is now");
        assert_eq!(wait_us(0, |at_us| at_us >= 1 << 80), u64::MAX);
    }
}
