//! What was charged, as heaps of units: all charges with the same stamp, bucket or window are one heap.

/// Heaps of units, each at its own stamp, bucket number or window number.
#[derive(Debug, Clone, Default)]
pub(super) struct Heaps {
    all: Vec<Heap>,
    newest_charged: u128,
    /// The last place that stood, where nothing stands any more.
    stood: u128,
}

/// Units that stand at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heap {
    /// The place: a stamp, a bucket number or a window number.
    pub(super) at: u128,
    /// Units that stand there, at least one.
    pub(super) units: u128,
}

impl Heaps {
    /// Adds `units` to what stands at `at`.
    pub(super) fn add(&mut self, at: u128, units: u128) {
        self.newest_charged = self.newest_charged.max(at);
        match self.all.iter_mut().find(|heap| heap.at == at) {
            Some(heap) => heap.units += units,
            None => self.all.push(Heap { at, units }),
        }
        self.all.retain(|heap| heap.units > 0);
    }

    /// Takes up to `units` of what stands at `at`, and says how many.
    pub(super) fn take(&mut self, at: u128, units: u128) -> u128 {
        let Some(heap) = self.all.iter_mut().find(|heap| heap.at == at) else {
            return 0;
        };
        let taken = units.min(heap.units);
        heap.units -= taken;
        self.all.retain(|heap| heap.units > 0);
        if self.all.is_empty() {
            self.stood = at;
        }
        taken
    }

    /// Forgets every heap before `at`.
    pub(super) fn forget_before(&mut self, at: u128) {
        self.all.retain(|heap| heap.at >= at);
    }

    /// What stands at `at`.
    pub(super) fn at(&self, at: u128) -> u128 {
        self.all.iter().filter(|heap| heap.at == at).map(|heap| heap.units).sum()
    }

    /// Every heap, oldest first.
    pub(super) fn oldest_first(&self) -> Vec<Heap> {
        let mut heaps = self.all.clone();
        heaps.sort_by_key(|heap| heap.at);
        heaps
    }

    /// The newest place ever charged, whether or not anything still stands there; 0 if none was.
    pub(super) fn newest_charged(&self) -> u128 {
        self.newest_charged
    }

    /// The newest place at which something stands, or the last at which something stood; 0 if there is none.
    pub(super) fn newest_standing(&self) -> u128 {
        self.all.iter().map(|heap| heap.at).max().unwrap_or(self.stood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_heap_and_vanishes_when_empty() {
        let mut heaps = Heaps::default();
        heaps.add(9, 2);
        heaps.add(7, 1);
        heaps.add(9, 3);
        assert_eq!(heaps.at(9), 5);
        assert_eq!(heaps.oldest_first().iter().map(|heap| heap.at).collect::<Vec<_>>(), [7, 9]);
        assert_eq!(heaps.take(9, 6), 5, "no more than stands there");
        assert_eq!(heaps.take(9, 1), 0);
        assert_eq!((heaps.newest_charged(), heaps.newest_standing()), (9, 7));
        heaps.forget_before(8);
        assert_eq!(heaps.newest_standing(), 0);
    }
}
