//! The states of all keys of one rule, in one shard.

use super::budget::Budget;
use super::table::layout::Layout;
use super::table::split_table::Table;
use crate::rule::{Limit, NameHash, Rule};
use crate::store::KeyState;

/// Layouts of one rule name. Nearly always there is one. Rules of one name that differ in geometry, as
/// inline rules with another number of buckets do, have one each; a key is in the layout of its last charge.
#[derive(Debug)]
pub(super) struct RuleStates {
    hash: NameHash,
    /// The id of a rule whose only limit equals that of the only table; 0 if none is known.
    exact_rule: u64,
    /// Whether it is an inline rule, which has its own part of the budget.
    is_inline: bool,
    current: Layout,
    others: Vec<Layout>,
}

impl RuleStates {
    pub(super) fn new(
        hash: NameHash,
        is_inline: bool,
        limits: impl IntoIterator<Item = Limit>,
        order: u64,
    ) -> Self {
        Self { hash, exact_rule: 0, is_inline, current: Layout::new(limits, order), others: Vec::new() }
    }

    /// The hash of the rule's name.
    #[inline]
    pub(super) fn hash(&self) -> NameHash {
        self.hash
    }

    /// See [`Room::of_rule`](super::table::room::Room::of_rule).
    pub(super) fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// Its own bytes, without the tables.
    pub(super) fn own_bytes() -> usize {
        size_of::<Self>()
    }

    /// See [`RuleStates::remember`].
    #[inline]
    pub(super) fn exact_rule(&self) -> u64 {
        self.exact_rule
    }

    /// The table of the rule that it remembers.
    #[inline]
    pub(super) fn exact_table(&mut self) -> &mut Table {
        self.current.first_table()
    }

    /// Remembers the rule if it has one limit, equal to that of the only table; returns whether it has. Charges of the
    /// rule then need not compare limits.
    pub(super) fn remember(&mut self, rule: &Rule) -> bool {
        let limits = rule.limits();
        let exact = limits.len() == 1 && self.others.is_empty() && self.current.is_exactly(limits);
        self.exact_rule = if exact { rule.id() } else { 0 };
        exact
    }

    /// Forgets it, before a change of the layouts.
    pub(super) fn forget(&mut self) {
        self.exact_rule = 0;
    }

    pub(super) fn layouts(&self) -> impl Iterator<Item = &Layout> {
        std::iter::once(&self.current).chain(&self.others)
    }

    pub(super) fn layouts_mut(&mut self) -> impl Iterator<Item = &mut Layout> {
        std::iter::once(&mut self.current).chain(&mut self.others)
    }

    /// Calls `look` on the states adapted to `rule`, without changing them.
    pub(super) fn look<T>(&self, fingerprint: u64, rule: &Rule, look: impl FnOnce(&Layout) -> T) -> T {
        let mut holders = self.layouts().filter(|layout| layout.contains(fingerprint));
        match holders.next() {
            Some(layout) if layout.fits(rule.limits()) => look(layout),
            Some(layout) => {
                let state = layout.state(fingerprint).expect("it holds the key");
                let mut adapted = Layout::new(rule.limits().iter().copied(), 0);
                adapted.put(&Budget::new(u64::MAX), fingerprint, state.adapted_to(rule.limits()));
                look(&adapted)
            }
            None => look(&Layout::new(rule.limits().iter().copied(), 0)),
        }
    }

    /// Makes the layout that fits `limits` the current one, and moves the key into it if another layout has it.
    pub(super) fn adapted_to(
        &mut self,
        budget: &Budget,
        fingerprint: u64,
        order: u64,
        limits: &[Limit],
    ) -> &mut Layout {
        if !self.current.fits(limits) {
            let fitting = self.others.iter().position(|layout| layout.fits(limits));
            let next = if let Some(index) = fitting {
                self.others.swap_remove(index)
            } else {
                budget.take_anyway(size_of::<Layout>());
                Layout::new(limits.iter().copied(), order)
            };
            self.others.push(std::mem::replace(&mut self.current, next));
        }
        if let Some(layout) = self.others.iter_mut().find(|layout| layout.contains(fingerprint)) {
            let state = layout.state(fingerprint).expect("it holds the key");
            layout.remove(budget, fingerprint, order);
            self.current.put(budget, fingerprint, state.adapted_to(limits));
        }
        &mut self.current
    }

    /// The layout that has the key; the current one if none has.
    pub(super) fn holder(&mut self, fingerprint: u64) -> &mut Layout {
        let holds = |layout: &Layout| layout.contains(fingerprint);
        match self.others.iter().position(holds) {
            Some(index) => &mut self.others[index],
            None => &mut self.current,
        }
    }

    /// A copy of the states of a key.
    pub(super) fn state(&self, fingerprint: u64) -> Option<KeyState> {
        self.layouts().find_map(|layout| layout.state(fingerprint))
    }

    /// Applies a live change of `rule` to all states.
    pub(super) fn change(&mut self, budget: &Budget, now_us: u64, order: u64, rule: &Rule) {
        if self.others.is_empty() && self.current.fits(rule.limits()) {
            self.current.change_limits(budget, rule.limits(), now_us);
            return;
        }
        let mut changed = Layout::new(rule.limits().iter().copied(), order);
        for layout in self.layouts() {
            for fingerprint in layout.fingerprints() {
                let state = layout.state(fingerprint).expect("the key was listed");
                changed.put(budget, fingerprint, state.changed(rule, now_us));
            }
        }
        if self.others.is_empty() {
            changed.inherit_void_receipts(&mut self.current);
        }
        self.layouts().for_each(|layout| layout.give_void_receipts(budget));
        budget.give(self.memory_bytes() - Self::own_bytes());
        self.current = changed;
        self.others.clear();
    }

    /// Drops all unused layouts but the current one.
    pub(super) fn drop_unused(&mut self, budget: &Budget) {
        self.others.retain(|layout| {
            let unused = layout.is_unused();
            if unused {
                budget.give(layout.memory_bytes() + size_of::<Layout>());
            }
            !unused
        });
    }

    /// Its bytes, with tables and heap.
    pub(super) fn memory_bytes(&self) -> usize {
        let tables: usize = self.layouts().map(Layout::memory_bytes).sum();
        Self::own_bytes() + self.others.len() * size_of::<Layout>() + tables
    }

    /// Whether no layout is in use.
    pub(super) fn is_unused(&self) -> bool {
        self.layouts().all(Layout::is_unused)
    }
}
