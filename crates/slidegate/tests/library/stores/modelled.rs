//! The model as a store: written against the public contract alone, and one that never forgets.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::receipt::{ReceiptCharge, ReceiptId};
use slidegate::rule::Limit;
use slidegate::store::{CheckError, LimitUsage, Outcome, ReturnError, Store, StoreError, When};
use slidegate::testing::Forgetting;
use slidegate::testing::model::{ModelDecision, ModelReceipt, ModelStore};
use slidegate::time::{Clock, SystemClock};
use slidegate::{Admission, Applied, ChargeError, Decision, Key, Receipt, ReceiptError, Rule, Verdict};

static STORES: AtomicU64 = AtomicU64::new(0);

pub struct Modelled {
    id: u64,
    clock: SystemClock,
    inside: Mutex<Inside>,
}

struct Inside {
    model: ModelStore,
    receipts: HashMap<ReceiptId, ModelReceipt>,
    spent: HashSet<ReceiptId>,
}

impl Modelled {
    pub fn new() -> Self {
        let inside = Inside {
            model: ModelStore::that_notes_nothing(),
            receipts: HashMap::new(),
            spent: HashSet::new(),
        };
        let id = STORES.fetch_add(1, Ordering::Relaxed);
        Self { id, clock: SystemClock::new(), inside: Mutex::new(inside) }
    }

    fn now_us(&self, when: When) -> u64 {
        match when {
            When::Now => self.clock.now_us(),
            When::AtUs(at_us) => at_us,
        }
    }

    /// Presents a receipt: its record in the model, and what the model says if it was not spent before.
    fn present(
        &self,
        receipt: &Receipt<'_>,
        act: impl FnOnce(&mut ModelStore, &ModelReceipt) -> Result<Applied, ReceiptError>,
    ) -> Result<Applied, ReturnError> {
        let inside = &mut *self.inside.lock().unwrap();
        if receipt.store() != self.id {
            return Err(ReceiptError::Foreign.into());
        }
        if inside.spent.contains(&receipt.id()) {
            return Ok(Applied::default());
        }
        let applied = act(&mut inside.model, &inside.receipts[&receipt.id()])?;
        if applied.applied {
            inside.spent.insert(receipt.id());
        }
        Ok(applied)
    }
}

impl Store for Modelled {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        let inside = &mut *self.inside.lock().unwrap();
        let (answer, modelled) = inside.model.check(self.now_us(when), admission);
        let decision = decision(admission, &answer);
        let receipt = modelled.map(|modelled| {
            let id = ReceiptId::new(0, inside.receipts.len() as u64);
            inside.receipts.insert(id, modelled);
            let verdict_of = |ask: usize| {
                let charge = admission.ask_of_charge().iter().position(|&of| of == ask).unwrap();
                &answer.verdicts[charge]
            };
            let asks = admission.asks().iter().enumerate().filter(|&(ask, _)| verdict_of(ask).allowed);
            let charges = asks.map(|(_, ask)| ReceiptCharge::at(ask.rule, ask.key.as_str(), ask.cost, 0, []));
            Receipt::new(id, self.id, charges)
        });
        Ok(Outcome { decision, receipt })
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(decision(admission, &self.inside.lock().unwrap().model.peek(self.now_us(when), admission)))
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        self.present(receipt, |model, modelled| Ok(model.refund(self.now_us(when), modelled)))
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        self.present(receipt, |model, modelled| {
            let first = receipt.charges()[0].cost();
            for charge in receipt.charges() {
                if charge.cost() != first {
                    return Err(ReceiptError::UnequalCosts { first, second: charge.cost() });
                }
                let excess_max = 16 * charge.limits().iter().map(Limit::units).min().unwrap();
                let excess = actual.saturating_sub(first);
                if excess > excess_max {
                    return Err(ReceiptError::Excess { rule: charge.rule().to_owned(), excess, excess_max });
                }
            }
            Ok(model.settle(self.now_us(when), modelled, actual))
        })
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() }.into());
        }
        Ok(self.inside.lock().unwrap().model.credit(self.now_us(when), rule, key.as_str(), units))
    }

    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Ok(self.inside.lock().unwrap().model.reset(self.now_us(when), rule, key.as_str()))
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let usages = self.inside.lock().unwrap().model.inspect(self.now_us(when), rule, key.as_str());
        let usages = usages.into_iter().map(|(limit, usage)| LimitUsage {
            limit,
            used: usage.used,
            reset_after: Duration::from_micros(usage.reset_after_us),
        });
        Ok(usages.collect())
    }

    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        self.inside.lock().unwrap().model.change(self.now_us(when), rule);
        Ok(())
    }
}

impl Forgetting for Modelled {}

/// The model's answer in the words of the contract.
fn decision<'a>(admission: &Admission<'a>, answer: &ModelDecision) -> Decision<'a> {
    let verdicts = admission.ask_of_charge().iter().zip(&answer.verdicts).map(|(&ask, modelled)| {
        let rule = admission.asks()[ask].rule;
        let limit = rule.limits().iter().find(|limit| limit.window_us() == modelled.window_us).unwrap();
        let verdict = Verdict::new(rule, limit).with_usage(modelled.used, modelled.reset_after_us);
        if modelled.allowed { verdict } else { verdict.denied(modelled.retry_after_us) }
    });
    Decision::of_verdicts(verdicts).unwrap()
}
