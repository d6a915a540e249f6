//! The memory store with a fault.

use std::time::Duration;

use slidegate::charge::ChargeTreatment;
use slidegate::decision::StateAnswer;
use slidegate::receipt::ReceiptCharge;
use slidegate::store::{Call, LimitUsage, MemoryStore, Store, StoreError, Update, UpdateError};
use slidegate::testing::ExpiringStore;
use slidegate::time::Clock;
use slidegate::{Admission, Applied, Charge, Decision, Key, Rule, Verdict};

/// The fault of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// A denial charges all remaining units.
    ChargesOnDeny,
    /// A refund reports success without giving anything back.
    ForgetsRefunds,
    /// Waits are rounded up to whole milliseconds.
    RoundsWaits,
    /// Charges of one admission are made one by one, until one is denied.
    ChargesOneByOne,
    /// The time of a call is ignored.
    KeepsItsOwnTime,
}

#[derive(Debug)]
pub struct FaultyStore {
    store: MemoryStore,
    fault: Fault,
}

impl FaultyStore {
    pub fn new(fault: Fault) -> Self {
        Self { store: MemoryStore::new(), fault }
    }

    fn when(&self, when: Call) -> Call {
        if self.fault == Fault::KeepsItsOwnTime { Call::now() } else { when }
    }

    fn now_us(&self, when: Call) -> u64 {
        when.instant_us().unwrap_or_else(|| self.store.clock().now_us())
    }

    fn shown<'a>(&self, admission: &Admission<'a>, decision: Decision<'a>) -> Decision<'a> {
        if self.fault != Fault::RoundsWaits || decision.is_charged() {
            return decision;
        }
        let rounded = |(ask, charge): (usize, &Charge<'a>)| {
            let shown = admission
                .treatments()
                .iter()
                .position(|treatment| *treatment == ChargeTreatment::Ask(ask))
                .unwrap();
            let shown = decision.verdicts().nth(shown).unwrap();
            let limits = charge.rule().limits();
            let limit = limits.iter().find(|limit| Some(limit.rate().window()) == shown.window()).unwrap();
            let us = |wait: Option<Duration>| u64::try_from(wait.unwrap_or_default().as_micros()).unwrap();
            let verdict =
                Verdict::new(charge, limit).with_usage(shown.used().unwrap(), us(shown.reset_after()));
            let wait_us = us(shown.retry_after()).div_ceil(1_000) * 1_000;
            StateAnswer::uncharged(if shown.allowed() { verdict } else { verdict.denied(wait_us) })
        };
        Decision::new(admission, admission.asks().iter().enumerate().map(rounded), None)
    }

    /// Whether the ask alone was admitted.
    fn charge_alone(&self, now_us: u64, ask: &Charge<'_>) -> bool {
        let alone = Admission::new(std::slice::from_ref(ask)).unwrap();
        self.store.check(now_us, &alone).unwrap().allowed()
    }

    fn take_what_is_left(&self, now_us: u64, ask: &Charge<'_>) {
        let one = Admission::new(&[Charge::new(ask.rule(), ask.key(), 1)]).unwrap();
        let cost = self.store.peek(now_us, &one).remaining().unwrap();
        if cost > 0 {
            let rest = Admission::new(&[Charge::new(ask.rule(), ask.key(), cost)]).unwrap();
            self.store.check(now_us, &rest).unwrap();
        }
    }
}

impl Store for FaultyStore {
    async fn check<'a>(&self, when: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let when = self.when(when);
        let decision = Store::check(&self.store, when, admission).await?;
        let denied = !decision.allowed();
        for ask in admission.asks().iter().filter(|_| denied) {
            match self.fault {
                Fault::ChargesOnDeny => self.take_what_is_left(self.now_us(when), ask),
                Fault::ChargesOneByOne if !self.charge_alone(self.now_us(when), ask) => break,
                _ => {}
            }
        }
        Ok(self.shown(admission, decision))
    }

    async fn peek<'a>(&self, when: Call, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        Ok(self.shown(admission, Store::peek(&self.store, self.when(when), admission).await?))
    }

    async fn update(&self, when: Call, update: Update<'_>) -> Result<Applied, UpdateError> {
        if let (Fault::ForgetsRefunds, Update::Refund(receipt)) = (self.fault, update) {
            let units = receipt.charges().iter().map(ReceiptCharge::cost).sum();
            return Ok(Applied { applied: true, units });
        }
        Store::update(&self.store, self.when(when), update).await
    }

    async fn inspect(&self, when: Call, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        Store::inspect(&self.store, self.when(when), rule, key).await
    }

    async fn change(&self, when: Call, rule: &Rule) -> Result<(), StoreError> {
        Store::change(&self.store, self.when(when), rule).await
    }
}

impl ExpiringStore for FaultyStore {
    async fn has_state(&self, rule: &Rule, key: Key<'_>) -> bool {
        ExpiringStore::has_state(&self.store, rule, key).await
    }

    async fn noted_us(&self) -> Option<u64> {
        ExpiringStore::noted_us(&self.store).await
    }

    async fn sweep(&self, now_us: u64) -> Option<usize> {
        ExpiringStore::sweep(&self.store, now_us).await
    }

    async fn snapshot(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        ExpiringStore::snapshot(&self.store, rule, key).await
    }
}
