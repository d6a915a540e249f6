//! Admissions whose states lie in several hash slots of a cluster, where no script can see all of them.
//!
//! 1. All slots are peeked. If one denies, so does the admission, and nothing was charged.
//! 2. The slots are charged one after the other, in the order of their numbers.
//! 3. If one denies meanwhile, or fails, the earlier ones are given back.
//!
//! No limit is exceeded at any time, because every slot decides for itself before it is charged. What an admission holds
//! for a moment, before it is given back, may deny another one: early, never over. Giving back is a refund without a
//! record: nobody has the receipt.
//!
//! The charges are made by a task, so that a caller that leaves, or whose deadline passes, does not leave half of an
//! admission behind. A slot that may have been charged without an answer stays so, and the error says it.

use std::collections::BTreeMap;
use std::time::Duration;

use slidegate::algorithm::State;
use slidegate::decision::StateAnswer;
use slidegate::receipt::ReceiptStamp;
use slidegate::store::{Call, StoreError};
use slidegate::{Admission, Charge, Decision, OwnedKey, Rule};
use tokio::time::{Instant, timeout_at};

use super::RedisStore;
use crate::cluster::Cluster;
use crate::connections::Connections;
use crate::decode;
use crate::encode::Args;
use crate::link::ScriptCall;
use crate::options::LogLayout;
use crate::scripts;

/// How long giving back may take: nobody waits for it, and a call that has failed has no time left.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(2);
/// How much longer than the deadline the task is waited for: it knows better why the call failed.
const GRACE: Duration = Duration::from_millis(5);

impl RedisStore {
    /// Checks an admission over several slots.
    pub(super) async fn check_slots<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
        names: &[Vec<u8>],
        slots: Vec<Vec<usize>>,
    ) -> Result<Decision<'a>, StoreError> {
        let (cluster, deadline, parts) = self.parts(call, admission, names, slots);
        let mut answers = peek(cluster, deadline, &parts).await?;
        let stamp = self.stamp();
        if answers.allowed {
            let (cluster, layout, peeked) = (cluster.clone(), self.layout, answers.states);
            let check = CrossSlotCheck { cluster, call, deadline, layout, stamp, parts, peeked };
            answers = check.run().await?;
        }
        let stamp = answers.charged.then_some(stamp);
        Ok(Decision::new(admission, answers.states, stamp).with_atomic(false))
    }

    /// Peeks at an admission over several slots.
    pub(super) async fn peek_slots<'a>(
        &self,
        call: Call,
        admission: &Admission<'a>,
        names: &[Vec<u8>],
        slots: Vec<Vec<usize>>,
    ) -> Result<Decision<'a>, StoreError> {
        let (cluster, deadline, parts) = self.parts(call, admission, names, slots);
        let answers = peek(cluster, deadline, &parts).await?;
        Ok(Decision::new(admission, answers.states, None).with_atomic(false))
    }

    /// The parts of an admission, one per slot.
    fn parts(
        &self,
        call: Call,
        admission: &Admission<'_>,
        names: &[Vec<u8>],
        slots: Vec<Vec<usize>>,
    ) -> (&Cluster, Instant, Vec<SlotPart>) {
        let Connections::Cluster(cluster) = &self.link else { unreachable!("only a cluster has slots") };
        let part = |numbers: Vec<usize>| {
            let asks: Vec<_> = numbers.iter().map(|&number| admission.asks()[number]).collect();
            let keys: Vec<_> = numbers.iter().map(|&number| names[number].clone()).collect();
            let peek = self.asks_call(&scripts::BINARY_PEEK, call, &asks, keys.clone());
            let check = self.asks_call(&scripts::BINARY_CHECK, call, &asks, keys);
            SlotPart::new(numbers, &asks, peek, check)
        };
        (cluster, cluster.deadline(call.deadline()), slots.into_iter().map(part).collect())
    }
}

/// The part of an admission in one slot. It owns all that the task needs.
struct SlotPart {
    /// The numbers of its asks.
    numbers: Vec<usize>,
    asks: Vec<OwnedAsk>,
    peek: ScriptCall,
    check: ScriptCall,
}

struct OwnedAsk {
    rule: Rule,
    key: OwnedKey,
    cost: u64,
}

impl OwnedAsk {
    fn charge(&self) -> Charge<'_> {
        Charge::new(&self.rule, self.key.key(), self.cost)
    }
}

impl SlotPart {
    fn new(numbers: Vec<usize>, asks: &[Charge<'_>], peek: ScriptCall, check: ScriptCall) -> Self {
        let owned =
            |ask: &Charge<'_>| OwnedAsk { rule: ask.rule().clone(), key: ask.key().into(), cost: ask.cost() };
        Self { numbers, asks: asks.iter().map(owned).collect(), peek, check }
    }

    fn charges(&self) -> Vec<Charge<'_>> {
        self.asks.iter().map(OwnedAsk::charge).collect()
    }

    /// The answers to its asks.
    fn read(&self, reply: redis::Value) -> Result<decode::AdmissionReply, StoreError> {
        decode::admission_reply(reply, &self.charges())
    }
}

/// What the slots answered.
struct SlotAnswers {
    states: Vec<StateAnswer>,
    allowed: bool,
    charged: bool,
}

/// Peeks at all slots at once. Nothing is charged, so its failures are never ambiguous.
async fn peek(cluster: &Cluster, deadline: Instant, parts: &[SlotPart]) -> Result<SlotAnswers, StoreError> {
    let calls = parts.iter().map(|part| part.peek.clone()).collect();
    let replies = cluster.call_all(Some(deadline.into_std()), calls).await;
    let (mut states, mut allowed) = (BTreeMap::new(), true);
    for (part, reply) in parts.iter().zip(replies) {
        let reply = reply.and_then(|reply| part.read(reply)).map_err(|error| match error {
            StoreError::Ambiguous { why } => StoreError::Unavailable { why },
            other => other,
        })?;
        allowed &= reply.allowed;
        states.extend(part.numbers.iter().copied().zip(reply.states));
    }
    Ok(SlotAnswers { states: states.into_values().collect(), allowed, charged: false })
}

/// An admission that every slot would admit.
struct CrossSlotCheck {
    cluster: Cluster,
    call: Call,
    deadline: Instant,
    layout: LogLayout,
    /// The stamp of the receipt, by which earlier slots are given back.
    stamp: ReceiptStamp,
    parts: Vec<SlotPart>,
    /// What the peeks answered.
    peeked: Vec<StateAnswer>,
}

impl CrossSlotCheck {
    /// Charges all slots, or none of them.
    async fn run(self) -> Result<SlotAnswers, StoreError> {
        let (runtime, latest) = (self.cluster.runtime().clone(), self.deadline + GRACE);
        match timeout_at(latest, runtime.spawn(self.charge())).await {
            Ok(Ok(answers)) => answers,
            // The task has panicked, or its runtime has ended.
            Ok(Err(error)) => Err(unfinished(&error.to_string())),
            Err(_) => {
                Err(unfinished("the deadline has passed, and what was charged is still being given back"))
            }
        }
    }

    async fn charge(self) -> Result<SlotAnswers, StoreError> {
        let mut states = self.peeked.clone();
        let (mut charged, mut any_charged) = (Vec::new(), false);
        for part in &self.parts {
            let reply = self.cluster.call(Some(self.deadline.into_std()), part.check.clone()).await;
            match reply.and_then(|reply| part.read(reply)) {
                Ok(reply) if reply.allowed => {
                    any_charged |= reply.charged;
                    if reply.charged {
                        charged.push(self.give_back_call(part, &reply.states));
                    }
                    for (&number, state) in part.numbers.iter().zip(reply.states) {
                        states[number] = state;
                    }
                }
                Ok(reply) => {
                    self.give_back(charged).await.map_err(|why| not_given_back(&why, None))?;
                    // The other slots are as they were peeked.
                    let mut states = self.peeked;
                    for (&number, state) in part.numbers.iter().zip(reply.states) {
                        states[number] = state;
                    }
                    return Ok(SlotAnswers { states, allowed: false, charged: false });
                }
                Err(error) => {
                    return Err(match self.give_back(charged).await {
                        Ok(()) => error,
                        Err(why) => not_given_back(&why, Some(&error)),
                    });
                }
            }
        }
        Ok(SlotAnswers { states, allowed: true, charged: any_charged })
    }

    /// The call that gives a charged slot back.
    fn give_back_call(&self, part: &SlotPart, states: &[StateAnswer]) -> ScriptCall {
        let charges = part.charges();
        let admission = Admission::new(&charges).expect("its charges were admitted, one per state");
        let decision = Decision::new(&admission, states.iter().cloned(), Some(self.stamp));
        let receipt = decision.receipt().expect("it was charged");
        let mut args = Args::at(self.layout, self.call, 0);
        args.instant(State::receipt_expires_us(&receipt));
        args.instant(0);
        // A shadow rule that would deny was not charged, and is not in the receipt.
        let is_charged = |ask: &Charge<'_>| {
            let (rule, key) = (ask.rule().name(), ask.key());
            receipt.charges().iter().any(|charge| (charge.rule(), charge.key()) == (rule, key))
        };
        let keys = charges.iter().zip(&part.check.keys).filter(|(ask, _)| is_charged(ask));
        let keys = keys.map(|(_, key)| key.clone()).collect();
        for charge in receipt.charges() {
            args.push_receipt_charge(charge);
        }
        ScriptCall { script: &scripts::GIVE_BACK, keys, args: args.0 }
    }

    /// Gives the charged slots back; otherwise says why not.
    async fn give_back(&self, charged: Vec<ScriptCall>) -> Result<(), String> {
        if charged.is_empty() {
            return Ok(());
        }
        let until = (Instant::now() + GIVE_BACK_TIMEOUT).into_std();
        let results = self.cluster.call_all(Some(until), charged).await;
        let failed = results.into_iter().find_map(Result::err);
        failed.map_or(Ok(()), |error| Err(error.to_string()))
    }
}

/// The error of a receipt that some slots have accepted already.
pub(super) fn half_presented(error: &StoreError) -> StoreError {
    let why = format!(
        "the receipt was applied in some slots of the cluster, then one failed: {error}; present it again, which applies \
         it in the others only"
    );
    StoreError::Ambiguous { why: why.into() }
}

fn unfinished(why: &str) -> StoreError {
    let why = format!("the charges lie in several slots of a cluster, and not all were answered: {why}");
    StoreError::Ambiguous { why: why.into() }
}

/// Some slots stay charged, until their windows end.
fn not_given_back(why: &str, error: Option<&StoreError>) -> StoreError {
    let because = error.map_or_else(|| "a slot denied".to_owned(), ToString::to_string);
    let why =
        format!("{because}; the charges in earlier slots of the cluster could not be given back: {why}");
    StoreError::Ambiguous { why: why.into() }
}
