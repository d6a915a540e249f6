//! Charges as sums of units: all charges with the same stamp, bucket or window are one sum.

/// Sums of units, each at its own stamp, bucket number or window number.
#[derive(Debug, Clone, Default)]
pub(super) struct ChargeSums {
    all: Vec<ChargeSum>,
    newest_charged: u128,
    /// The position of the last sum that was taken, if no sum is left.
    last_emptied: u128,
}

/// The units at one position.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChargeSum {
    /// A stamp, a bucket number or a window number.
    pub(super) at: u128,
    /// The units, at least one.
    pub(super) units: u128,
}

impl ChargeSums {
    /// Adds `units` at `at`.
    pub(super) fn add(&mut self, at: u128, units: u128) {
        self.newest_charged = self.newest_charged.max(at);
        match self.all.iter_mut().find(|sum| sum.at == at) {
            Some(sum) => sum.units += units,
            None => self.all.push(ChargeSum { at, units }),
        }
        self.all.retain(|sum| sum.units > 0);
    }

    /// Takes up to `units` at `at`; returns how many.
    pub(super) fn take(&mut self, at: u128, units: u128) -> u128 {
        let Some(sum) = self.all.iter_mut().find(|sum| sum.at == at) else {
            return 0;
        };
        let taken = units.min(sum.units);
        sum.units -= taken;
        self.all.retain(|sum| sum.units > 0);
        if self.all.is_empty() {
            self.last_emptied = at;
        }
        taken
    }

    /// Drops every sum before `at`.
    pub(super) fn forget_before(&mut self, at: u128) {
        self.all.retain(|sum| sum.at >= at);
    }

    /// The units at `at`.
    pub(super) fn at(&self, at: u128) -> u128 {
        self.all.iter().filter(|sum| sum.at == at).map(|sum| sum.units).sum()
    }

    /// Every sum, oldest first.
    pub(super) fn oldest_first(&self) -> Vec<ChargeSum> {
        let mut sums = self.all.clone();
        sums.sort_by_key(|sum| sum.at);
        sums
    }

    /// The newest position ever charged, even if its units are gone; 0 if there is none.
    pub(super) fn newest_charged(&self) -> u128 {
        self.newest_charged
    }

    /// The newest position with units, or the last one that was emptied; 0 if there is none.
    pub(super) fn newest_present(&self) -> u128 {
        self.all.iter().map(|sum| sum.at).max().unwrap_or(self.last_emptied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_heap_and_vanishes_when_empty() {
        let mut sums = ChargeSums::default();
        sums.add(9, 2);
        sums.add(7, 1);
        sums.add(9, 3);
        assert_eq!(sums.at(9), 5);
        assert_eq!(sums.oldest_first().iter().map(|sum| sum.at).collect::<Vec<_>>(), [7, 9]);
        assert_eq!(sums.take(9, 6), 5, "no more than is there");
        assert_eq!(sums.take(9, 1), 0);
        assert_eq!((sums.newest_charged(), sums.newest_present()), (9, 7));
        sums.forget_before(8);
        assert_eq!(sums.newest_present(), 0);
    }
}
