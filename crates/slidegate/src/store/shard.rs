//! What one lock guards: the states of the keys that hash to it.

use super::error::StoreError;
use super::key_state::KeyState;
use super::layout::{Layout, Prepared};
use super::limit_table::Room;
use super::rule_states::RuleStates;
use crate::algorithm::Usage;
use crate::charge::Charge;
use crate::decision::Verdict;
use crate::few::Few;
use crate::receipt::{Applied, Place, ReceiptCharge, ReceiptId};
use crate::rule::{AtBudget, Limit, Rule, name_hash};

/// Most keys that make room for one: a new state may need more than one old one had.
const EVICTED_MAX: usize = 4;

/// States by rule and key.
#[derive(Debug)]
pub(super) struct Shard {
    /// By the hash of their names.
    rules: Vec<RuleStates>,
    /// Which of the shards it is.
    number: u64,
    /// Orders handed out so far.
    order: u64,
    /// Which rule the sweep is at.
    swept_rule: usize,
    pub(super) tally: Tally,
}

/// What has happened to keys besides being charged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) swept: u64,
    pub(super) evicted: u64,
    pub(super) full: u64,
}

impl Shard {
    pub(super) fn new(number: usize) -> Self {
        Self { rules: Vec::new(), number: number as u64, order: 0, swept_rule: 0, tally: Tally::default() }
    }

    /// A number later than all that this shard has handed out.
    #[inline]
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// How many orders were handed out.
    #[inline]
    pub(super) fn order(&self) -> u64 {
        self.order
    }

    /// The id of a receipt whose first charge is `charge`, made here: no other receipt has it.
    #[inline]
    pub(super) fn id_of(&self, charge: &ReceiptCharge<'_>) -> ReceiptId {
        let order = charge.places.first().map_or(0, |place| place.order);
        ReceiptId(u128::from(self.number) << 64 | u128::from(order))
    }

    #[inline]
    fn find(&self, hash: u64, name: &str) -> Result<usize, usize> {
        let mut index = self.rules.partition_point(|rule| rule.hash() < hash);
        while let Some(rule) = self.rules.get(index).filter(|rule| rule.hash() == hash) {
            if rule.name() == name {
                return Ok(index);
            }
            index += 1;
        }
        Err(index)
    }

    fn rule(&self, rule: &Rule) -> Option<&RuleStates> {
        self.find(rule.name_hash(), rule.name()).ok().map(|index| &self.rules[index])
    }

    fn named_mut(&mut self, name: &str) -> Option<&mut RuleStates> {
        let index = self.find(name_hash(name), name).ok()?;
        Some(&mut self.rules[index])
    }

    /// The states of a rule, begun if there are none.
    fn begun(
        &mut self,
        name: &str,
        limits: impl IntoIterator<Item = Limit>,
        take: impl FnOnce(usize) -> Result<(), StoreError>,
    ) -> Result<&mut RuleStates, StoreError> {
        let index = match self.find(name_hash(name), name) {
            Ok(index) => index,
            Err(index) => {
                let states = RuleStates::new(name, limits, self.order);
                take(states.own_bytes())?;
                self.rules.insert(index, states);
                index
            }
        };
        Ok(&mut self.rules[index])
    }

    /// Decides on a charge that comes alone and, if it passes, makes it. `None` for whatever is not simple
    /// or does not fit: then nothing was changed.
    #[inline]
    pub(super) fn admit<'a>(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        ask: &Charge<'a>,
    ) -> Option<(Verdict<'a>, Option<ReceiptCharge<'a>>)> {
        let [limit] = ask.rule.limits() else { return None };
        if ask.cost > limit.units() {
            return None;
        }
        let index = self.find(ask.rule.name_hash(), ask.rule.name()).ok()?;
        let layout = self.rules[index].only(ask.rule.limits())?;
        let (verdict, position) = layout.admit(room, fingerprint, now_us, ask).ok()?;
        let Some(position) = position else { return Some((verdict, None)) };
        let place = Place { limit: *limit, order: self.next(), position };
        let charge = ReceiptCharge {
            rule: ask.rule.name().into(),
            key: ask.key.as_str().into(),
            cost: ask.cost,
            places: Few::One([place]),
        };
        Some((verdict, Some(charge)))
    }

    /// Does `look` on the states of a key as `rule` sees them.
    fn look<T>(&self, fingerprint: u64, rule: &Rule, look: impl FnOnce(&Layout) -> T) -> T {
        match self.rule(rule) {
            Some(states) => states.look(fingerprint, rule, look),
            None => look(&Layout::new(rule.limits().iter().copied(), 0)),
        }
    }

    /// What the rule of `ask` says to it, without charging.
    pub(super) fn verdict<'a>(&self, fingerprint: u64, now_us: u64, ask: &Charge<'a>) -> Verdict<'a> {
        self.look(fingerprint, ask.rule, |layout| layout.verdict(fingerprint, now_us, ask))
    }

    pub(super) fn usages(&self, fingerprint: u64, now_us: u64, rule: &Rule) -> Vec<(Limit, Usage)> {
        self.look(fingerprint, rule, |layout| layout.usages(fingerprint, rule.limits(), now_us))
    }

    pub(super) fn state(&self, fingerprint: u64, rule: &Rule) -> Option<KeyState> {
        self.rule(rule)?.state(fingerprint)
    }

    /// Makes a place for the key of `ask`, which was decided, and sets aside what its charge may need.
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
        let prepared = self.begun(rule.name(), limits, |bytes| room.budget.take(bytes)).and_then(|states| {
            let layout = states.met_by(room.budget, fingerprint, order, rule.limits());
            loop {
                let full = match layout.prepare(room, fingerprint, rule.limits(), cost) {
                    Ok(prepared) => return Ok(prepared),
                    Err(full) => full,
                };
                let may_evict = rule.at_budget() == AtBudget::EvictOldest && evicted < EVICTED_MAX;
                if !may_evict || !layout.evict(room.budget, fingerprint, order) {
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
        if let Some(states) = self.named_mut(ask.rule.name()) {
            states.holder(fingerprint).unprepare(room.budget, fingerprint, prepared);
        }
    }

    /// Makes the charge of `ask`, which was prepared.
    pub(super) fn charge<'a>(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        ask: &Charge<'a>,
        prepared: &Prepared,
    ) -> (Verdict<'a>, ReceiptCharge<'a>) {
        let order = self.next();
        let states = self.named_mut(ask.rule.name()).expect("it was prepared");
        let layout = states.holder(fingerprint);
        layout.charge(room.budget, (fingerprint, order), now_us, ask, prepared)
    }

    /// Takes back up to `units` of what a charge left behind.
    pub(super) fn refund(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &ReceiptCharge<'_>,
        units: u64,
    ) -> u64 {
        let Some(states) = self.named_mut(charge.rule()) else { return 0 };
        states.holder(fingerprint).refund(room, fingerprint, now_us, &charge.places, units)
    }

    /// Charges what was spent above the cost of `charge`, within the budget or not: the work is done.
    pub(super) fn charge_excess(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &ReceiptCharge<'_>,
        units: u64,
    ) {
        let limits: Few<Limit> = charge.places.iter().map(|place| place.limit).collect();
        let order = self.next();
        let states = self.begun(charge.rule(), limits.iter().copied(), |bytes| {
            room.budget.take_anyway(bytes);
            Ok(())
        });
        let states = states.expect("memory was taken");
        if states.holder(fingerprint).charge_excess(room.budget, fingerprint, now_us, units) {
            return;
        }
        // It was reset or forgotten since: it begins anew, as it was charged.
        let mut state = KeyState::new(&limits);
        state.charge_excess(now_us, units);
        states.met_by(room.budget, fingerprint, order, &limits).put(room.budget, fingerprint, state);
    }

    pub(super) fn credit(
        &mut self,
        room: Room<'_>,
        fingerprint: u64,
        now_us: u64,
        charge: &Charge<'_>,
    ) -> Applied {
        let order = self.next();
        let Some(states) = self.named_mut(charge.rule.name()) else { return Applied::default() };
        let layout = states.met_by(room.budget, fingerprint, order, charge.rule.limits());
        let units = layout.credit(room.budget, fingerprint, now_us, charge);
        Applied { applied: units > 0, units }
    }

    pub(super) fn reset(&mut self, room: Room<'_>, fingerprint: u64, now_us: u64, rule: &Rule) -> Applied {
        let order = self.next();
        let Some(states) = self.named_mut(rule.name()) else { return Applied::default() };
        let units = states.state(fingerprint).map_or(0, |state| state.used_max(now_us));
        states.holder(fingerprint).remove(room.budget, fingerprint, order);
        Applied { applied: units > 0, units }
    }

    pub(super) fn change(&mut self, room: Room<'_>, now_us: u64, rule: &Rule) {
        let order = self.next();
        if let Some(states) = self.named_mut(rule.name()) {
            states.change(room.budget, now_us, order, rule);
        }
    }

    /// Drops the keys that have ended, of the next `count` slots of one rule; says how many.
    pub(super) fn sweep_some(&mut self, room: Room<'_>, count: usize) -> usize {
        let Some(states) = self.rules.get_mut(self.swept_rule) else {
            self.swept_rule = 0;
            return 0;
        };
        let mut dropped = 0;
        let mut round = true;
        for layout in states.layouts_mut() {
            let (ended, came_round) = layout.sweep(room, count);
            dropped += ended;
            round &= came_round;
        }
        if round {
            states.drop_unused();
            if states.is_unused() {
                room.budget.give(states.own_bytes());
                self.rules.remove(self.swept_rule);
                self.rules.shrink_to_fit();
            } else {
                self.swept_rule += 1;
            }
        }
        self.tally.swept += dropped as u64;
        dropped
    }

    /// Drops all keys that have ended; says how many.
    pub(super) fn sweep(&mut self, room: Room<'_>) -> usize {
        let mut dropped = 0;
        self.rules.retain_mut(|states| {
            dropped += states.layouts_mut().map(|layout| layout.sweep_all(room)).sum::<usize>();
            states.drop_unused();
            let unused = states.is_unused();
            if unused {
                room.budget.give(states.own_bytes());
            }
            !unused
        });
        self.rules.shrink_to_fit();
        self.swept_rule = 0;
        self.tally.swept += dropped as u64;
        dropped
    }

    /// Keys of all rules.
    pub(super) fn len(&self) -> usize {
        self.rules.iter().flat_map(RuleStates::layouts).map(Layout::len).sum()
    }
}
