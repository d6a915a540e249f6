//! The memory store with a fault.

use slidegate::receipt::ReceiptCharge;
use slidegate::store::{CheckError, LimitUsage, MemoryStore, Outcome, ReturnError, Store, StoreError, When};
use slidegate::testing::Forgetting;
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Receipt, Rule, Verdict};

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// A denial takes what is left.
    ChargesOnDeny,
    /// A refund says that it was done.
    ForgetsRefunds,
    /// Waits are told in whole milliseconds, rounded up.
    RoundsWaits,
    /// Charges of one admission are made one by one, until one is denied.
    ChargesOneByOne,
    /// The time of a call is ignored.
    KeepsItsOwnTime,
}

#[derive(Debug)]
pub struct Broken {
    store: MemoryStore,
    fault: Fault,
}

impl Broken {
    pub fn new(fault: Fault) -> Self {
        Self { store: MemoryStore::new(), fault }
    }

    fn when(&self, when: When) -> When {
        if self.fault == Fault::KeepsItsOwnTime { When::Now } else { when }
    }

    fn now_us(&self, when: When) -> u64 {
        match when {
            When::Now => self.store.clock().now_us(),
            When::AtUs(at_us) => at_us,
        }
    }

    fn shown<'a>(&self, decision: Decision<'a>) -> Decision<'a> {
        if self.fault != Fault::RoundsWaits {
            return decision;
        }
        let rounded = |verdict: &Verdict<'a>| {
            let wait_us = u64::try_from(verdict.retry_after().as_micros()).unwrap();
            if verdict.allowed() { *verdict } else { verdict.denied(wait_us.div_ceil(1_000) * 1_000) }
        };
        Decision::of_verdicts(decision.verdicts().iter().map(rounded)).unwrap()
    }

    /// Whether the ask alone was admitted.
    fn charge_alone(&self, now_us: u64, ask: &Charge<'_>) -> bool {
        let alone = Admission::new(std::slice::from_ref(ask)).unwrap();
        self.store.check(now_us, &alone).unwrap().decision.allowed()
    }

    fn take_what_is_left(&self, now_us: u64, ask: &Charge<'_>) {
        let one = Admission::new(&[Charge { cost: 1, ..*ask }]).unwrap();
        let cost = self.store.peek(now_us, &one).remaining();
        if cost > 0 {
            let rest = Admission::new(&[Charge { cost, ..*ask }]).unwrap();
            self.store.check(now_us, &rest).unwrap();
        }
    }
}

impl Store for Broken {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        let when = self.when(when);
        let outcome = Store::check(&self.store, when, admission).await?;
        let denied = !outcome.decision.allowed();
        for ask in admission.asks().iter().filter(|_| denied) {
            match self.fault {
                Fault::ChargesOnDeny => self.take_what_is_left(self.now_us(when), ask),
                Fault::ChargesOneByOne if !self.charge_alone(self.now_us(when), ask) => break,
                _ => {}
            }
        }
        Ok(Outcome { decision: self.shown(outcome.decision), ..outcome })
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.shown(Store::peek(&self.store, self.when(when), admission).await?))
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        if self.fault == Fault::ForgetsRefunds {
            let units = receipt.charges().iter().map(ReceiptCharge::cost).sum();
            return Ok(Applied { applied: true, units });
        }
        Store::refund(&self.store, self.when(when), receipt).await
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        Store::settle(&self.store, self.when(when), receipt, actual).await
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        Store::credit(&self.store, self.when(when), rule, key, units).await
    }

    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        Store::reset(&self.store, self.when(when), rule, key).await
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Store::inspect(&self.store, self.when(when), rule, key).await
    }

    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        Store::change(&self.store, self.when(when), rule).await
    }
}

impl Forgetting for Broken {
    async fn remembers(&self, rule: &Rule, key: Key<'_>) -> bool {
        Forgetting::remembers(&self.store, rule, key).await
    }

    async fn noted_us(&self) -> Option<u64> {
        Forgetting::noted_us(&self.store).await
    }

    async fn sweep(&self, now_us: u64) -> Option<usize> {
        Forgetting::sweep(&self.store, now_us).await
    }

    async fn seen(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        Forgetting::seen(&self.store, rule, key).await
    }
}
