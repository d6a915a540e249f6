//! A shard: the states of the keys that hash to it, behind one lock.

use std::sync::atomic::Ordering;

use super::rule_states::RuleStates;
use super::table::layout::{Layout, Prepared};
use super::table::room::Room;
use super::table::split_table::Table;
use crate::algorithm::Usage;
use crate::charge::Charge;
use crate::decision::{StateAnswer, Verdict};
use crate::error::StoreError;
use crate::few::Few;
use crate::receipt::{Applied, ReceiptCharge};
use crate::rule::{AtBudget, Limit, NameHash, Rule, name_hash};
use crate::store::KeyState;

/// Most keys that are evicted for one: a new state may need more memory than an old one has.
const EVICTED_MAX: usize = 4;

/// Admissions of a shard per sweep.
const ADMISSIONS_PER_SWEEP: u64 = 128;

/// States by rule and key.
#[derive(Debug)]
pub(super) struct Shard {
    /// By the hash of their names.
    rules: Few<RuleStates>,
    /// The number of the shard.
    number: u64,
    /// The last sequence number that was issued.
    order: u64,
    /// Index of the rule that is swept next.
    swept_rule: usize,
    /// The sequence number at which the next sweep is due.
    sweep_at: u64,
    pub(super) tally: Tally,
}

/// Counts of evictions and of charges without room.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) evicted: u64,
    pub(super) full: u64,
}

impl Shard {
    pub(super) fn new(number: usize) -> Self {
        Self {
            rules: Few::new(),
            number: number as u64,
            order: 0,
            swept_rule: 0,
            sweep_at: 0,
            tally: Tally::default(),
        }
    }

    /// The next sequence number.
    #[inline]
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Whether it was never changed.
    pub(super) fn is_unused(&self) -> bool {
        self.order == 0
    }

    /// The number of the shard.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    fn find(&self, rule: NameHash) -> Result<usize, usize> {
        self.rules.binary_search_by_key(&rule, RuleStates::hash)
    }

    fn rule(&self, rule: &Rule) -> Option<&RuleStates> {
        self.find(rule.name_hash()).ok().map(|index| &self.rules[index])
    }

    /// The states of a rule, and the room of that rule.
    #[inline]
    fn rule_mut<'r>(&mut self, room: Room<'r>, rule: NameHash) -> Option<(Room<'r>, &mut RuleStates)> {
        let index = self.find(rule).ok()?;
        let states = &mut self.rules[index];
        states.forget();
        Some((room.of_rule(states.is_inline()), states))
    }

    /// The states of a rule, by its name and the hash of it; created if there are none, with memory that `take` takes.
    fn states_or_new<'r>(
        &mut self,
        room: Room<'r>,
        (name, hash): (&str, NameHash),
        limits: impl IntoIterator<Item = Limit>,
        take: impl FnOnce(Room<'r>, usize) -> Result<(), StoreError>,
    ) -> Result<(Room<'r>, &mut RuleStates), StoreError> {
        let index = match self.find(hash) {
            Ok(index) => index,
            Err(index) => {
                let is_inline = Rule::is_inline_name(name);
                take(room.of_rule(is_inline), RuleStates::own_bytes())?;
                let states = RuleStates::new(hash, is_inline, limits, self.order);
                self.rules.insert(index, states);
                index
            }
        };
        let states = &mut self.rules[index];
        states.forget();
        Ok((room.of_rule(states.is_inline()), states))
    }

    /// The table of a rule with one limit in one layout, and the last sequence number that was issued.
    #[expect(clippy::inline_always, reason = "the path of a single charge is one function, see `check_as`")]
    #[inline(always)]
    pub(super) fn only_table(&mut self, rule: &Rule) -> Option<(&mut Table, &mut u64)> {
        // Most limiters have one rule or a few.
        let index = match self.rules.iter().take(4).position(|states| states.exact_rule() == rule.id()) {
            Some(index) => index,
            None => self.remember(rule)?,
        };
        Some((self.rules[index].exact_table(), &mut self.order))
    }

    /// The index of the states of a rule with one limit in one layout. Remembers it, so that it is found faster.
    #[inline(never)]
    fn remember(&mut self, rule: &Rule) -> Option<usize> {
        let index = self.find(rule.name_hash()).ok()?;
        self.rules[index].remember(rule).then_some(index)
    }

    /// Whether a sweep is due; if so, schedules the next one.
    #[inline]
    pub(super) fn sweep_is_due(&mut self) -> bool {
        let due = self.order >= self.sweep_at;
        if due {
            self.sweep_at = self.order + ADMISSIONS_PER_SWEEP;
        }
        due
    }

    /// Calls `look` on the states of a key adapted to `rule`.
    fn look<T>(&self, fingerprint: u64, rule: &Rule, look: impl FnOnce(&Layout) -> T) -> T {
        match self.rule(rule) {
            Some(states) => states.look(fingerprint, rule, look),
            None => look(&Layout::new(rule.limits().iter().copied(), 0)),
        }
    }

    /// The verdict on `ask`, without charging.
    pub(super) fn verdict<'a>(&self, fingerprint: u64, now_us: u64, ask: &Charge<'a>) -> Verdict<'a> {
        self.look(fingerprint, ask.rule, |layout| layout.verdict(fingerprint, now_us, ask))
    }

    pub(super) fn usages(&self, fingerprint: u64, now_us: u64, rule: &Rule) -> Vec<(Limit, Usage)> {
        self.look(fingerprint, rule, |layout| layout.usages(fingerprint, rule.limits(), now_us))
    }

    pub(super) fn state(&self, fingerprint: u64, rule: &Rule) -> Option<KeyState> {
        self.rule(rule)?.state(fingerprint)
    }

    /// Inserts a slot for the key of `ask`, which was admitted, and reserves the memory of its charge.
    pub(super) fn prepare(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        ask: &Charge<'_>,
    ) -> Result<Prepared, StoreError> {
        let Charge { rule, cost, .. } = *ask;
        let order = self.next();
        let mut evicted = 0;
        let limits = rule.limits().iter().copied();
        let named = (rule.name(), rule.name_hash());
        let prepared = self
            .states_or_new(room, named, limits, |room, bytes| room.budget.take(bytes))
            .and_then(|(room, states)| {
                let layout = states.adapted_to(room.budget, fingerprint, order, rule.limits());
                loop {
                    let full = match layout.prepare(room, fingerprint, rule.limits(), cost) {
                        Ok(prepared) => return Ok(prepared),
                        Err(full) => full,
                    };
                    let may_evict = rule.at_budget() == AtBudget::EvictOldest && evicted < EVICTED_MAX;
                    if !may_evict || !layout.evict(room, fingerprint, order) {
                        return Err(full);
                    }
                    evicted += 1;
                }
            });
        self.tally.evicted += evicted as u64;
        self.tally.full += u64::from(prepared.is_err());
        prepared
    }

    pub(super) fn unprepare(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        ask: &Charge<'_>,
        prepared: &Prepared,
    ) {
        if let Some((room, states)) = self.rule_mut(room, ask.rule.name_hash()) {
            states.holder(fingerprint).unprepare(room.budget, fingerprint, prepared);
        }
    }

    /// Charges `ask`, which was prepared; returns its sequence number and answer.
    pub(super) fn charge(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        ask: &Charge<'_>,
        prepared: &Prepared,
    ) -> (u64, StateAnswer) {
        let order = self.next();
        let (room, states) = self.rule_mut(room, ask.rule.name_hash()).expect("it was prepared");
        let layout = states.holder(fingerprint);
        (order, layout.charge(room.budget, (fingerprint, order), now_us, ask, prepared))
    }

    /// Takes back up to `units` of a charge.
    pub(super) fn refund(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &ReceiptCharge,
        units: u64,
    ) -> u64 {
        let Some((room, states)) = self.rule_mut(room, name_hash(charge.rule())) else { return 0 };
        states.holder(fingerprint).refund(room, fingerprint, now_us, charge, units)
    }

    /// Charges the excess above the cost of `charge`, even beyond the budget: the work is done.
    pub(super) fn charge_excess(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &ReceiptCharge,
        units: u64,
    ) {
        let limits: Vec<Limit> = charge.limits().collect();
        let order = self.next();
        let named = (charge.rule(), name_hash(charge.rule()));
        let states = self.states_or_new(room, named, limits.iter().copied(), |room, bytes| {
            room.budget.take_anyway(bytes);
            Ok(())
        });
        let (room, states) = states.expect("memory was taken");
        if states.holder(fingerprint).charge_excess(room.budget, fingerprint, now_us, units) {
            return;
        }
        // The key was reset or dropped since: a new state starts under the limits of the charge.
        let mut state = KeyState::new(&limits);
        state.charge_excess(now_us, units);
        states.adapted_to(room.budget, fingerprint, order, &limits).put(room.budget, fingerprint, state);
    }

    pub(super) fn credit(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &Charge<'_>,
    ) -> Applied {
        let order = self.next();
        let Some((room, states)) = self.rule_mut(room, charge.rule.name_hash()) else {
            return Applied::default();
        };
        let layout = states.adapted_to(room.budget, fingerprint, order, charge.rule.limits());
        let units = layout.credit(room.budget, fingerprint, now_us, charge);
        Applied { applied: units > 0, units }
    }

    pub(super) fn reset(&mut self, room: Room<'_>, fingerprint: u64, now_us: u64, rule: &Rule) -> Applied {
        let order = self.next();
        let Some((room, states)) = self.rule_mut(room, rule.name_hash()) else { return Applied::default() };
        let units = states.state(fingerprint).map_or(0, |state| state.used_max(now_us));
        states.holder(fingerprint).remove(room.budget, fingerprint, order);
        Applied { applied: units > 0, units }
    }

    pub(super) fn change(&mut self, room: Room<'_>, now_us: u64, rule: &Rule) {
        let order = self.next();
        if let Some((room, states)) = self.rule_mut(room, rule.name_hash()) {
            states.change(room.budget, now_us, order, rule);
        }
    }

    /// Drops the ended keys among the next `count` slots of one rule; returns how many.
    pub(super) fn sweep_some(&mut self, room: Room<'_>, count: usize) -> usize {
        let Some(states) = self.rules.get_mut(self.swept_rule) else {
            self.swept_rule = 0;
            return 0;
        };
        let room = room.of_rule(states.is_inline());
        let mut dropped = 0;
        // The sweep moves on to the next rule when the first layout has been swept to its end. Waiting for all layouts
        // to end in the same call may take forever: they have different lengths.
        let mut round = false;
        for layout in states.layouts_mut() {
            let (ended, came_round) = layout.sweep(room, count);
            dropped += ended;
            round |= came_round;
        }
        if round {
            states.drop_unused(room.budget);
            if states.is_unused() {
                room.budget.give(states.memory_bytes());
                self.rules.remove(self.swept_rule);
                self.rules.shrink_to_fit();
            } else {
                self.swept_rule += 1;
            }
        }
        room.swept.fetch_add(dropped as u64, Ordering::Relaxed);
        dropped
    }

    /// Drops all ended keys; returns how many.
    pub(super) fn sweep(&mut self, room: Room<'_>) -> usize {
        let mut dropped = 0;
        self.rules.retain_mut(|states| {
            let room = room.of_rule(states.is_inline());
            dropped += states.layouts_mut().map(|layout| layout.sweep_all(room)).sum::<usize>();
            states.drop_unused(room.budget);
            let unused = states.is_unused();
            if unused {
                room.budget.give(states.memory_bytes());
            }
            !unused
        });
        self.rules.shrink_to_fit();
        self.swept_rule = 0;
        room.swept.fetch_add(dropped as u64, Ordering::Relaxed);
        dropped
    }

    /// Keys of all rules.
    pub(super) fn len(&self) -> usize {
        self.rules.iter().flat_map(RuleStates::layouts).map(Layout::len).sum()
    }
}
