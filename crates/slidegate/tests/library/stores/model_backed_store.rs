//! The model as a store: written against the public traits alone; it never drops states.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use slidegate::charge::ChargeTreatment;
use slidegate::decision::StateAnswer;
use slidegate::receipt::{OrderedPosition, Position, ReceiptId, ReceiptStamp};
use slidegate::store::{Call, LimitUsage, Store, StoreError, Update, UpdateError};
use slidegate::testing::ExpiringStore;
use slidegate::testing::model::{ModelDecision, ModelReceipt, ModelStore};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Admission, Applied, Decision, Key, Receipt, ReceiptError, Rule, Verdict};

static STORES: AtomicU32 = AtomicU32::new(0);

pub struct ModelBackedStore {
    id: u32,
    clock: SystemClock,
    state: Mutex<ModelState>,
}

struct ModelState {
    model: ModelStore,
    receipts: HashMap<ReceiptId, ModelReceipt>,
    spent: HashSet<ReceiptId>,
}

impl ModelBackedStore {
    pub fn new() -> Self {
        let state = ModelState {
            model: ModelStore::without_watermark(),
            receipts: HashMap::new(),
            spent: HashSet::new(),
        };
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        Self { id, clock: SystemClock::new(), state: Mutex::new(state) }
    }

    fn now_us(&self, when: Call) -> u64 {
        when.instant_us().unwrap_or_else(|| self.clock.now_us())
    }

    /// Runs `act` on the model's receipt, unless it was spent before.
    fn present(
        &self,
        receipt: &Receipt,
        act: impl FnOnce(&mut ModelStore, &ModelReceipt) -> Result<Applied, ReceiptError>,
    ) -> Result<Applied, UpdateError> {
        let state = &mut *self.state.lock().unwrap();
        if receipt.store() != self.id {
            return Err(ReceiptError::Foreign.into());
        }
        if state.spent.contains(&receipt.id()) {
            return Ok(Applied::default());
        }
        let applied = act(&mut state.model, &state.receipts[&receipt.id()])?;
        if applied.applied {
            state.spent.insert(receipt.id());
        }
        Ok(applied)
    }
}

impl Store for ModelBackedStore {
    async fn check<'a>(&self, when: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let state = &mut *self.state.lock().unwrap();
        let (answer, modelled) = state.model.check(self.now_us(when), admission);
        let stamp = modelled.map(|modelled| {
            let id = ReceiptId::new(state.receipts.len() as u64);
            state.receipts.insert(id, modelled);
            ReceiptStamp { id, store: self.id }
        });
        Ok(decision(admission, &answer, stamp))
    }

    async fn peek<'a>(&self, when: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let answer = self.state.lock().unwrap().model.peek(self.now_us(when), admission);
        Ok(decision(admission, &answer, None))
    }

    async fn update(&self, when: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        let now_us = self.now_us(when);
        match update {
            Update::Refund(receipt) => {
                self.present(receipt, |model, modelled| Ok(model.refund(now_us, modelled)))
            }
            Update::Settle(receipt, actual) => self.present(receipt, |model, modelled| {
                let first = receipt.charges()[0].cost();
                for charge in receipt.charges() {
                    if charge.cost() != first {
                        return Err(ReceiptError::UnequalCosts { first, second: charge.cost() });
                    }
                    let excess_max = 16 * charge.limits().map(|limit| limit.units()).min().unwrap();
                    let excess = actual.saturating_sub(first);
                    if excess > excess_max {
                        let rule = charge.rule().to_owned();
                        return Err(ReceiptError::Excess { rule, excess, excess_max });
                    }
                }
                Ok(model.settle(now_us, modelled, actual))
            }),
            Update::Credit(charge) => {
                let (rule, key, units) = (charge.rule(), charge.key(), charge.cost());
                Ok(self.state.lock().unwrap().model.credit(now_us, rule, key.identity(), units))
            }
            Update::Reset(rule, key) => {
                Ok(self.state.lock().unwrap().model.reset(now_us, rule, key.identity()))
            }
        }
    }

    async fn inspect(&self, when: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let usages = self.state.lock().unwrap().model.inspect(self.now_us(when), rule, key.identity());
        let usages = usages.into_iter().map(|(limit, usage)| {
            LimitUsage::new(limit, usage.used, Duration::from_micros(usage.reset_after_us))
        });
        Ok(usages.collect())
    }

    async fn change(&self, when: Call, rule: &Rule) -> Result<(), StoreError> {
        self.state.lock().unwrap().model.change(self.now_us(when), rule);
        Ok(())
    }
}

impl ExpiringStore for ModelBackedStore {}

/// The model's answer as a decision. The positions of its charges are dummies: the model has its own.
fn decision<'a>(
    admission: &Admission<'a>,
    answer: &ModelDecision,
    stamp: Option<ReceiptStamp>,
) -> Decision<'a> {
    let answers = admission.asks().iter().enumerate().map(|(ask, charge)| {
        let shown = admission
            .treatments()
            .iter()
            .position(|treatment| *treatment == ChargeTreatment::Ask(ask))
            .unwrap();
        let modelled = &answer.verdicts[shown];
        let limits = charge.rule().limits();
        let limit = limits.iter().find(|limit| limit.window_us() == modelled.window_us).unwrap();
        let verdict = Verdict::new(charge, limit).with_usage(modelled.used, modelled.reset_after_us);
        if !modelled.allowed {
            return StateAnswer::uncharged(verdict.denied(modelled.retry_after_us));
        }
        let nowhere = OrderedPosition { order: 0, position: Position::At(0) };
        let positions = limits.iter().filter(|_| stamp.is_some()).map(|_| nowhere);
        StateAnswer::charged(verdict, positions)
    });
    Decision::new(admission, answers, stamp)
}
