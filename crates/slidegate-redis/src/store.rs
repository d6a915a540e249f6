//! The store: every verb is one script call.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slidegate::algorithm::State;
use slidegate::receipt::ReceiptId;
use slidegate::store::{CheckError, LimitUsage, Outcome, ReturnError, Store, StoreError, When};
use slidegate::testing::Forgetting;
use slidegate::{Admission, Applied, ChargeError, Decision, Key, Receipt, ReceiptError, Rule, Verdict};

use crate::decode::{self, Reply};
use crate::encode::Args;
use crate::failure::Failure;
use crate::keys::{KeyTemplate, spent_name};
use crate::link::{Call, ConnectError, Link};
use crate::options::{LogLayout, RedisOptions};
use crate::scripts::{self, Script};

/// How the name of the value beside sorted sets ends.
const BESIDE_SETS: &[u8] = b"%state";
/// Bytes of the secret that receipts are signed with.
const SECRET_BYTES: usize = 32;
/// Numbers drawn for calls are below this: scripts count exactly below 2^53, and six bytes hold it.
const NONCE_BITS: u32 = 48;

/// A store that all processes share who use the same Redis and name their keys alike.
///
/// Its clock is the server's. Every verb is one call of a script, in which everything is read and checked before
/// anything is written; a change of a rule is one call per key.
pub struct RedisStore {
    link: Link,
    keys: KeyTemplate,
    layout: LogLayout,
    number: u64,
    random: RandomState,
    drawn: AtomicU64,
    /// The latest time at which a receipt was presented: what had expired by then stays expired.
    latest_us: AtomicU64,
}

/// What a receipt is presented for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Refund,
    Settle(u64),
    /// To ask whether it could still be used.
    Ask,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl RedisStore {
    /// A store in the Redis that the options name. All its connections are open, and it is new enough.
    pub async fn connect(options: &RedisOptions) -> Result<Self, ConnectError> {
        let link = Link::connect(options).await?;
        let (keys, layout) = (options.keys.clone(), options.log_layout);
        let number = keys.store_number();
        let (drawn, latest_us) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self { link, keys, layout, number, random: RandomState::new(), drawn, latest_us })
    }

    /// A secret that all have who share these keys, and nobody else: receipts that leave a process are signed with
    /// it. Whoever asks first draws it; Redis keeps it.
    pub async fn secret(&self) -> Result<[u8; SECRET_BYTES], StoreError> {
        let mut drawn = [0; SECRET_BYTES];
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut drawn).map_err(|_| StoreError::Unavailable {
            why: "the system gives no random numbers to sign receipts with; see getrandom(2)".into(),
        })?;
        let call =
            Call { script: &scripts::SECRET, keys: vec![self.keys.secret()], args: vec![drawn.to_vec()] };
        match self.link.call(call).await? {
            redis::Value::BulkString(secret) => secret.try_into().map_err(|found: Vec<u8>| {
                let name = String::from_utf8_lossy(&self.keys.secret()).into_owned();
                let why = format!("`{name}` has {} bytes and is no secret of ours; delete it", found.len());
                StoreError::Refused { why: why.into() }
            }),
            _ => Err(Failure::not_understood("a script").into()),
        }
    }

    /// A number that nobody can guess and that is not drawn twice.
    fn draw(&self) -> u64 {
        self.random.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    fn nonce(&self) -> u64 {
        self.draw() >> (u64::BITS - NONCE_BITS)
    }

    /// The call that asks for an admission, and the number drawn for it.
    fn asked(
        &self,
        script: &'static Script,
        when: When,
        admission: &Admission<'_>,
    ) -> Result<(Call, u64), StoreError> {
        let asks = admission.asks().iter();
        let keys: Vec<_> = asks.map(|ask| self.keys.state(ask.rule.name(), ask.key.as_str())).collect();
        self.keys.check_apart(&keys)?;
        let nonce = self.nonce();
        let mut args = Args::at(self.layout, when, nonce);
        args.asks(admission);
        Ok((Call { script, keys, args: args.0 }, nonce))
    }

    /// The call that is about one key under one rule.
    fn about(&self, script: &'static Script, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Call {
        let mut args = Args::at(self.layout, when, self.nonce());
        args.ask(rule, units);
        Call { script, keys: vec![self.keys.state(rule.name(), key.as_str())], args: args.0 }
    }

    fn outcome<'a>(
        &self,
        admission: &Admission<'a>,
        nonce: u64,
        answer: Result<redis::Value, StoreError>,
    ) -> Result<Outcome<'a>, StoreError> {
        let answer = decode::answer(answer?, admission)?;
        let decision = decision(admission, &answer.verdicts);
        let id = ReceiptId::new(nonce, self.draw());
        let charged = !answer.charges.is_empty();
        let receipt = charged.then(|| Receipt::new(id, self.number, answer.charges));
        Ok(Outcome { decision, receipt })
    }

    /// Presents a receipt; says whether that spent it, and how many units were moved.
    async fn present(
        &self,
        when: When,
        receipt: &Receipt<'_>,
        purpose: Purpose,
    ) -> Result<(bool, u64), ReturnError> {
        if receipt.store() != self.number {
            return Err(ReceiptError::Foreign.into());
        }
        let charges = receipt.charges();
        let mut keys: Vec<_> =
            charges.iter().map(|charge| self.keys.state(charge.rule(), charge.key())).collect();
        keys.push(spent_name(&keys[0], receipt.id()));
        let mut args = Args::at(self.layout, when, self.nonce());
        args.instant(State::receipt_expires_us(receipt));
        args.instant(self.latest_us.load(Ordering::Relaxed));
        let script: &'static Script = match purpose {
            Purpose::Refund => &scripts::REFUND,
            Purpose::Settle(_) | Purpose::Ask => &scripts::SETTLE,
        };
        match purpose {
            Purpose::Refund => {}
            Purpose::Settle(actual) => args.number(actual),
            Purpose::Ask => args.0.push(Vec::new()),
        }
        for charge in charges {
            args.charge(charge);
        }
        let mut reply = Reply::new(self.link.call(Call { script, keys, args: args.0 }).await?)?;
        let spent = reply.number()? == 1;
        self.latest_us.fetch_max(reply.instant_us()?, Ordering::Relaxed);
        Ok((spent, reply.number()?))
    }

    /// The answer of a script that gives back units of one key.
    async fn given_back(&self, call: Call) -> Result<Applied, StoreError> {
        let mut reply = Reply::new(self.link.call(call).await?)?;
        let applied = reply.number()? == 1;
        reply.instant_us()?;
        Ok(Applied { applied, units: reply.number()? })
    }
}

impl Store for RedisStore {
    async fn check<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Outcome<'a>, StoreError> {
        let (call, nonce) = self.asked(&scripts::SHORT_CHECK, when, admission)?;
        self.outcome(admission, nonce, self.link.call(call).await)
    }

    /// In one round trip; the clock is read once per admission.
    async fn check_batch<'a>(
        &self,
        when: When,
        admissions: &[Admission<'a>],
    ) -> Vec<Result<Outcome<'a>, StoreError>> {
        let mut calls = Vec::with_capacity(admissions.len());
        // What is refused here is not sent.
        let mut ask = |admission| {
            let (call, nonce) = self.asked(&scripts::SHORT_CHECK, when, admission)?;
            calls.push(call);
            Ok(nonce)
        };
        let nonces: Vec<_> = admissions.iter().map(&mut ask).collect();
        let mut answers = self.link.call_all(calls).await.into_iter();
        let outcome = |(admission, nonce): (_, Result<u64, _>)| {
            let answer = nonce.map(|nonce| (nonce, answers.next().expect("one answer per call")));
            answer.and_then(|(nonce, answer)| self.outcome(admission, nonce, answer))
        };
        admissions.iter().zip(nonces).map(outcome).collect()
    }

    async fn peek<'a>(&self, when: When, admission: &Admission<'a>) -> Result<Decision<'a>, StoreError> {
        let (call, _) = self.asked(&scripts::SHORT_PEEK, when, admission)?;
        let answer = decode::answer(self.link.call(call).await?, admission)?;
        Ok(decision(admission, &answer.verdicts))
    }

    async fn refund(&self, when: When, receipt: &Receipt<'_>) -> Result<Applied, ReturnError> {
        let (spent, units) = self.present(when, receipt, Purpose::Refund).await?;
        Ok(Applied { applied: spent && units > 0, units })
    }

    async fn settle(&self, when: When, receipt: &Receipt<'_>, actual: u64) -> Result<Applied, ReturnError> {
        let cost = match receipt.settled_cost(actual) {
            Ok(cost) => cost,
            // A receipt that was spent or has expired says so, whatever it is to be settled for.
            Err(error) => {
                let (usable, _) = self.present(when, receipt, Purpose::Ask).await?;
                return if usable { Err(error.into()) } else { Ok(Applied::default()) };
            }
        };
        let (spent, units) = self.present(when, receipt, Purpose::Settle(actual)).await?;
        Ok(Applied { applied: spent && (units > 0 || actual == cost), units })
    }

    async fn credit(&self, when: When, rule: &Rule, key: Key<'_>, units: u64) -> Result<Applied, CheckError> {
        if units == 0 {
            return Err(ChargeError::ZeroCredit { rule: rule.name().to_owned() }.into());
        }
        Ok(self.given_back(self.about(&scripts::CREDIT, when, rule, key, units)).await?)
    }

    async fn reset(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Applied, StoreError> {
        self.given_back(self.about(&scripts::RESET, when, rule, key, 0)).await
    }

    async fn inspect(&self, when: When, rule: &Rule, key: Key<'_>) -> Result<Vec<LimitUsage>, StoreError> {
        let call = self.about(&scripts::INSPECT, when, rule, key, 0);
        let mut reply = Reply::new(self.link.call(call).await?)?;
        reply.instant_us()?;
        let usages = rule.limits().iter().map(|&limit| {
            let (used, reset_after_us) = (reply.number()?, reply.number()?);
            Ok(LimitUsage { limit, used, reset_after: Duration::from_micros(reset_after_us) })
        });
        usages.collect()
    }

    /// Key by key, as they are found: what is charged meanwhile under the old rule may still go on under it.
    async fn change(&self, when: When, rule: &Rule) -> Result<(), StoreError> {
        let mut pattern = self.keys.pattern(rule.name().as_bytes());
        if self.layout == LogLayout::SortedSet {
            // Where a rule has several limits there is nothing under the name itself.
            pattern.push(b'*');
        }
        let mut cursor = 0;
        loop {
            let (next, found) = self.link.scan(&pattern, cursor).await?;
            let call = |key| {
                let mut args = Args::at(self.layout, when, self.nonce());
                args.ask(rule, 0);
                Call { script: &scripts::CHANGE, keys: vec![key], args: args.0 }
            };
            let states = found.iter().map(|name| name.strip_suffix(BESIDE_SETS).unwrap_or(name));
            // A pattern may find more than it should, and a state by two names.
            let states = states.filter(|name| self.keys.key_of(name, rule.name().as_bytes()).is_some());
            let states: BTreeSet<Vec<u8>> = states.map(<[u8]>::to_vec).collect();
            for answer in self.link.call_all(states.into_iter().map(call).collect()).await {
                answer?;
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}

/// It notes no time, and forgets by the server's clock only.
impl Forgetting for RedisStore {
    const LOOKS_EVERY: usize = 16;

    async fn seen(&self, rule: &Rule, key: Key<'_>) -> Option<String> {
        let keys = vec![self.keys.state(rule.name(), key.as_str())];
        match self.link.call(Call { script: &scripts::LOOK, keys, args: Vec::new() }).await {
            Ok(redis::Value::BulkString(bytes)) => Some(bytes.into_iter().map(char::from).collect()),
            _ => None,
        }
    }
}

/// Every charge shows the verdict of its state.
fn decision<'a>(admission: &Admission<'_>, verdicts: &[Verdict<'a>]) -> Decision<'a> {
    let of_charges = admission.ask_of_charge().iter().map(|&ask| verdicts[ask]);
    Decision::of_verdicts(of_charges).expect("an admission has a charge")
}
